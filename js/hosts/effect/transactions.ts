/** The transactions that a store is read and written in. */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import { BeginTransaction, SqlClient } from "effect/sql/SqlClient"
import type { Connection } from "effect/sql/SqlConnection"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { JournalFoldError } from "../../core/errors.js"
import { mostRetries, pauseMs } from "../postgres/apply.js"
import { sqlFailure, type DeferredClockError } from "./errors.js"
import type { Host } from "./host.js"
import { postgresHost } from "./postgres.js"
import { sqliteHost } from "./sqlite.js"

/**
 * Writes durably: everything in one transaction. An engine that has a writer of its own, which takes a lock or counts what is written,
 * provides that in place of {@link layerSql}.
 */
export class DurableWriter extends Context.Service<
  DurableWriter,
  {
    /**
     * Runs an effect in one transaction of the `SqlClient`, of the highest isolation the store has: committed when it succeeds, rolled
     * back when it fails or is interrupted. In Postgres it must be at least `REPEATABLE READ`.
     */
    readonly write: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | SqlError, R>
  }
>()("journal-fold/DurableWriter") {}

/** A {@link DurableWriter} over the `SqlClient`: `SERIALIZABLE` in Postgres, `BEGIN IMMEDIATE` in SQLite. */
export const layerSql: Layer.Layer<DurableWriter, never, SqlClient> = Layer.effect(
  DurableWriter,
  Effect.map(SqlClient, (client) => ({
    write: (effect) => beginning(client, writeOf(client), effect)
  }))
)

function writeOf(client: SqlClient): string | undefined {
  return client.onDialectOrElse({ sqlite: () => sqliteHost.begin.write, pg: () => postgresHost.begin.write, orElse: () => undefined })
}

/** A transaction that begins with a statement. Other transactions begun inside of it begin as they would have outside. */
function beginning<A, E, R>(client: SqlClient, begin: string | undefined, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError, R> {
  return Effect.flatMap(BeginTransaction, (outer) =>
    client
      .withTransaction(Effect.provideService(effect, BeginTransaction, outer))
      .pipe(Effect.provideService(BeginTransaction, begin ?? outer))
  )
}

/** The client and the host for its dialect. */
const hosted: Effect.Effect<{ readonly client: SqlClient; readonly host: Host }, JournalFoldError, SqlClient> = Effect.flatMap(
  SqlClient,
  (client) =>
    client.onDialectOrElse({
      sqlite: () => Effect.succeed({ client, host: sqliteHost }),
      pg: () => Effect.succeed({ client, host: postgresHost }),
      orElse: () => Effect.fail(new JournalFoldError("argument_invalid", "expected an SqlClient of SQLite or Postgres, found another dialect"))
    })
)

/** The connection of the transaction that the client is inside of. */
function connectionWithin(client: SqlClient): Effect.Effect<Option.Option<Connection>> {
  return Effect.map(Effect.serviceOption(client.transactionService), Option.map(([connection]) => connection))
}

type Use<A> = (host: Host, connection: Connection, own: boolean) => Effect.Effect<A, DeferredClockError>

/** Reads in the caller's transaction, if there is one, or in one of its own. */
export function reading<A>(use: Use<A>): Effect.Effect<A, DeferredClockError, SqlClient> {
  return Effect.gen(function* () {
    const { client, host } = yield* hosted
    const callers = yield* connectionWithin(client)
    if (Option.isSome(callers)) return yield* use(host, callers.value, false)
    return yield* within(client, host, use, (work) => beginning(client, host.begin.read, work))
  })
}

/**
 * Writes in one transaction of the {@link DurableWriter}'s. When another writer's commit makes it impossible, all of it is done again,
 * three times at the most.
 */
export function writing<A>(use: Use<A>): Effect.Effect<A, DeferredClockError, SqlClient | DurableWriter> {
  return Effect.gen(function* () {
    const { client, host } = yield* hosted
    const writer = yield* DurableWriter
    if (Option.isSome(yield* connectionWithin(client))) {
      return yield* Effect.fail(
        new JournalFoldError("nested_transaction", "the SqlClient is inside a transaction; a plan is applied in one of its own")
      )
    }
    return yield* Effect.retry(within(client, host, use, writer.write), {
      while: host.isInTheWay,
      times: mostRetries,
      schedule: Schedule.jittered(Schedule.exponential(pauseMs))
    })
  })
}

/** Does the work in the transaction that `transact` makes, and types what that fails with: the work's own failures are typed already. */
function within<A>(
  client: SqlClient,
  host: Host,
  use: Use<A>,
  transact: (work: Effect.Effect<A, DeferredClockError>) => Effect.Effect<A, DeferredClockError | SqlError>
): Effect.Effect<A, DeferredClockError> {
  return Effect.suspend(() => {
    let failure: DeferredClockError | undefined
    let committing = false
    const work = Effect.flatMap(connectionWithin(client), (connection) => {
      // A writer may do the work more than once.
      failure = undefined
      committing = false
      return Option.isSome(connection)
        ? use(host, connection.value, true)
        : Effect.fail(new JournalFoldError("call_out_of_order", "expected the DurableWriter to begin a transaction of the SqlClient, found none"))
    }).pipe(
      Effect.tap(() => Effect.sync(() => void (committing = true))),
      Effect.tapError((error) => Effect.sync(() => void (failure = error)))
    )
    const typed = (error: unknown): DeferredClockError | undefined => {
      if (isSqlError(error)) return sqlFailure(error, (driverError) => host.errorOf(driverError, committing))
      return error === failure ? failure : undefined
    }
    return Effect.catchCause(transact(work), (cause) => {
      // A connection that is gone cannot roll back either. The client makes that a defect, and then what the work failed with too, which
      // is still the error to tell. What is neither, such as an interruption, stays what it is.
      const errors = cause.reasons.map((reason) => {
        if (Cause.isFailReason(reason)) return typed(reason.error)
        return Cause.isDieReason(reason) ? typed(reason.defect) : undefined
      })
      const error = failure ?? errors[0]
      return error === undefined || errors.includes(undefined) ? Effect.failCause(cause as Cause.Cause<never>) : Effect.fail(error)
    })
  })
}
