/** The same store in SQLite and in Postgres, each behind an SqlClient: written by the demo's engine. */
import type pg from "pg"
import { Effect, Exit, Layer, Scope, type Context } from "effect"
import type { SqlClient } from "effect/sql"
import { onTestFinished } from "vitest"
import { copyInto, derivedRows as postgresRows, freshStore } from "../postgres/stores.js"
import { demoStore, derivedRows as sqliteRows } from "../sqlite/stores.js"
import { pgClient, sqliteClient, withWriter, type Needs } from "./clients.js"

/** A store, and another way into it than the client's. */
export interface Store {
  readonly context: Context.Context<Needs>
  /** Runs a statement beside the client. */
  exec(sql: string): Promise<void>
  /** Every row of both derived tables. */
  derived(): Promise<unknown>
  /** Runs an effect with the client and the writer. */
  run<A, E>(effect: Effect.Effect<A, E, Needs>): Promise<A>
}

async function storeOf(client: Layer.Layer<SqlClient.SqlClient, unknown>, rest: Pick<Store, "exec" | "derived">): Promise<Store> {
  const scope = Scope.makeUnsafe()
  onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const context = await Effect.runPromise(Layer.buildWithScope(withWriter(client), scope))
  return { context, ...rest, run: (effect) => Effect.runPromise(Effect.provideContext(effect, context)) }
}

/** A store of so many runs in SQLite. */
export async function sqliteStore(runs = 60): Promise<Store> {
  const { db } = demoStore({ runs })
  onTestFinished(() => void db.close())
  return storeOf(sqliteClient(db), { exec: async (sql) => void db.exec(sql), derived: async () => sqliteRows(db) })
}

/** The same store in Postgres, behind the pool of `@effect/sql-pg`. */
export async function postgresStore(runs = 60): Promise<Store & { readonly client: pg.Client }> {
  const { client, url } = await freshStore()
  onTestFinished(() => client.end())
  await copyInto(client, demoStore({ runs }).db)
  const store = await storeOf(pgClient(url), {
    exec: async (sql) => void (await client.query(sql)),
    derived: async () => postgresRows(client)
  })
  return { ...store, client }
}

/** Both, for tests that hold on both. */
export const stores = [["SQLite", sqliteStore], ["Postgres", postgresStore]] as const
