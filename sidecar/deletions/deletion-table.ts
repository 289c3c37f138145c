/**
 * Runs for deleted documents, as state machines over documents of the control database. The engine of a database
 * creates one document for each deletion (`docstate/finding/deletions.ts`).
 *
 *     run ──> done ──(a week)──> over: deleted
 */
import type { Machines } from '../../ddocs/machine.ts'
import { Reject } from '../core/errors.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { createControl } from '../docstate/control.ts'
import { forget, UNTIL_DONE } from '../docstate/handler-options.ts'
import { joinHandlers, type LoadedHandlers } from '../docstate/handlers.ts'
import { AFTER_RUN, deletionType, type Deletion, type Tombstone } from '../docstate/runs.ts'
import type { Context } from '../docstate/types.ts'

const machine = {
  run: { mode: 'unsafe', create: 'sidecar', next: { done: 'sidecar' } },
  ...AFTER_RUN,
} as const satisfies Machines[string]

/** Handlers in the control database for these deletions. */
export const deletionTable = (deletions: readonly Deletion[]): LoadedHandlers => joinHandlers(deletions.map(tableOf))

function tableOf({ type: deleted, handler, options }: Deletion): LoadedHandlers {
  const type = deletionType(deleted)
  const table = createControl<Machines>({ [type]: machine })
  table.unsafe(
    type,
    'run',
    async (run, ctx) => {
      await handler(run.deleted as Tombstone, contextIn(String(run.database), ctx))
      return { ...run, state: 'done' }
    },
    options,
  )
  table.safe(type, 'over', (run: StoredDoc & { readonly state: string }) => forget(run), UNTIL_DONE)
  return table
}

/** The context of a run, for the database in which the document was deleted. */
function contextIn(database: string, ctx: Context): Context {
  const other = ctx.db(database)
  const save = () => Promise.reject(new Reject('deleted', 'ctx.save: the document was deleted; expected ctx.put'))
  const own: Pick<Context, 'database' | 'find' | 'put' | 'save'> = {
    ...{ database, save },
    find: (id) => other.find(id),
    put: (doc) => other.put(doc),
  }
  return Object.assign(Object.create(ctx) as Context, own)
}
