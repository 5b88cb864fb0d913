/** Numbers as people read them. The same on every machine, whatever its locale. */

/** A whole number with commas. */
export function number(value: number | bigint): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",")
}

/** A count and its noun. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${number(count)} ${count === 1 ? one : many}`
}

/** A time span. */
export function seconds(ms: number): string {
  if (ms < 9_950) return `${(ms / 1000).toFixed(ms < 995 ? 2 : 1)} s`
  if (ms < 59_500) return `${Math.round(ms / 1000)} s`
  const minutes = Math.floor(Math.round(ms / 1000) / 60)
  return `${minutes} min ${Math.round(ms / 1000) % 60} s`
}

/** Bytes, in MB. */
export function megabytes(bytes: number): string {
  return `${number(Math.round(bytes / 1e6))} MB`
}

/** A time in ms, as ISO 8601 where that can say it. */
export function time(ms: number): string {
  return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : `${ms} ms`
}
