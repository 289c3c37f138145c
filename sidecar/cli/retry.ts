import type { Config } from '../config.ts'
import { ConfigError, SidecarError } from '../core/errors.ts'
import { retryAll, retryDocument, type Retried } from '../docstate/retry.ts'
import { withCouch } from './connect.ts'
import type { Terminal } from './terminal.ts'

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
    const database = couch.db(db)
    if (id !== undefined) {
      const retried = await retryDocument(database, id)
      if (retried.kind !== 'retried') throw new SidecarError(retried.kind, inWords(retried))
      return terminal.print(inWords(retried))
    }
    let count = 0
    for await (const retried of retryAll(database, type)) {
      terminal.print(inWords(retried))
      count += 1
    }
    terminal.print(`${count} brought back`)
  })
}

function inWords(retried: Retried): string {
  switch (retried.kind) {
    case 'retried':
      return `${retried.id} is back in state ${retried.state}`
    case 'not-found':
      return `there is no document ${retried.id}`
    case 'nothing-to-retry':
      return `${retried.id} is in state ${String(retried.state)}: it neither failed nor waits`
  }
}
