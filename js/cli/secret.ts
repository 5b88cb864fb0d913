/** Passwords in URLs: they are not for reports, errors, plans or logs. */
import { isPostgresUrl } from "../hosts/postgres/open.js"

const hidden = "***"

/** A text; the URL of a store without its passwords. */
export function hideSecret(text: string): string {
  if (!isPostgresUrl(text)) return text
  const shown = text.replace(/([?&](?:ssl)?password=)[^&#]*/gi, `$1${hidden}`)
  const { password } = parsed(shown) ?? {}
  // Cut out of the text, so that all the rest stays as it was typed.
  if (password) return shown.replace(/^([^:]+:\/\/[^:@/?#]*:)[^/?#]*(?=@)/, `$1${hidden}`)
  // One with characters that should have been escaped, so that it is taken for something else: all up to the last @ may belong to it.
  return shown.replace(/^([^:]+:\/\/[^:@/?#]*:).*(?=@)/s, `$1${hidden}`)
}

function parsed(text: string): URL | undefined {
  try {
    return new URL(text)
  } catch {
    return undefined
  }
}
