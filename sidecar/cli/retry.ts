import type { Config } from '../config.ts'
import { ConfigError, SidecarError } from '../core/errors.ts'
import type { Couch } from '../couch/client.ts'
import { retryAll, retryDocument, type Retried } from '../docstate/operator/retry.ts'
import { countStates } from '../docstate/operator/status.ts'
import { withCouch } from './connect.ts'
import { oneLine } from './printable.ts'
import type { Terminal } from './terminal.ts'
import { whileBuilding } from './while-building.ts'

export interface RetryFlags {
  readonly all?: boolean
  readonly type?: string
}

/** Brings one document back to its handler, or all that are stuck. */
export async function retry(
  terminal: Terminal,
  config: Config,
  { db, id }: { readonly db: string; readonly id: string | undefined },
  { all, type }: RetryFlags,
): Promise<void> {
  if ((id === undefined) === !all) throw new ConfigError(['retry: expected either a document id or --all'])
  await withCouch(config, async (couch) => {
    if (id === undefined) return everything(terminal, couch, db, type)
    const retried = await retryDocument(couch.db(db), id, terminal.signal)
    if (retried.kind !== 'retried') throw new SidecarError(retried.kind, oneLine(inWords(retried)))
    terminal.print(oneLine(inWords(retried)))
  })
}

async function everything(terminal: Terminal, couch: Couch, db: string, type: string | undefined): Promise<void> {
  const { signal } = terminal
  const database = couch.db(db)
  const states = await whileBuilding(countStates(database, signal), { couch, database: db, terminal })
  const counts = states.filter((count) => type === undefined || count.type === type)
  const count = { retried: 0, changed: 0 }
  for await (const retried of retryAll({ database, counts, signal })) {
    terminal.print(oneLine(inWords(retried)))
    count[retried.kind === 'retried' ? 'retried' : 'changed'] += 1
  }
  terminal.print(`${count.retried} brought back`)
  if (count.changed > 0) {
    throw new SidecarError('changed', `${count.changed} changed meanwhile: another run looks at what they are now`)
  }
}

function inWords(retried: Retried): string {
  switch (retried.kind) {
    case 'retried':
      return `${retried.id} is back in state ${retried.state}`
    case 'not-found':
      return `there is no document "${retried.id}"`
    case 'nothing-to-retry':
      return `${retried.id} is in state ${String(retried.state)}: it neither failed nor waits`
    case 'changed':
      return `${retried.id} changed meanwhile, and is left as it is now`
  }
}
