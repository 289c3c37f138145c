/** A database with a view under constant queries, and its next version. */
import { setTimeout as sleep } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import type { Database } from '../../../sidecar/couch/database.ts'
import { deployDdocs, type DeployOptions } from '../../../sidecar/deploy/deploy.ts'
import type { Couch } from '../../../sidecar/couch/client.ts'
import { answerOf } from '../../support/answers.ts'
import { createTestCouch, freshDb, uniqueName } from '../../support/couchdb.ts'
import { ddocFolder } from '../folder.ts'

export const DOCS = 300

/** The view has `rows` rows for each document; the map takes `slowly` milliseconds for each. */
export const shop = (rows: number, slowly = 0): Record<string, string> => ({
  'app/views/v/map.js': `export default function (doc) {
    const until = Date.now() + ${slowly}
    while (Date.now() < until);
    for (let row = 0; row < ${rows}; row++) emit(doc.n, null)
  }`,
  'app/rows.json': String(rows),
})

export interface Shop {
  readonly couch: Couch
  readonly db: Database
  /** Ids of the deploy's own documents in the database. */
  readonly left: () => Promise<string[]>
  /** The view's rows for each document, as a query that waits for the index gets them. */
  readonly rows: (couch?: Couch) => Promise<number>
}

/** One row for each document, with a built index; on the server of this run by default. */
export async function openShop(docs = DOCS, elsewhere?: Couch): Promise<Shop> {
  const couch = elsewhere ?? createTestCouch()
  const db = elsewhere ? elsewhere.db(uniqueName('shop')) : await freshDb('shop')
  if (elsewhere) await db.create()
  await db.bulk(Array.from({ length: docs }, (_, n) => JSON.stringify({ _id: `order-${n}`, n })))
  await deployShop(couch, db.name, shop(1))
  const opened: Shop = {
    couch,
    db,
    left: async () => (await db.withPrefix('_design/sidecar:')).map(({ _id }) => _id),
    async rows(at = couch) {
      const request = { db: db.name, path: '_design/app/_view/v', query: { limit: 0 } }
      return (await answerOf<{ total_rows: number }>(at, request)).total_rows / docs
    },
  }
  await opened.rows()
  return opened
}

export const deployShop = (
  couch: Couch,
  database: string,
  files: Record<string, string>,
  options: Partial<DeployOptions> = {},
) =>
  deployDdocs({
    couch,
    deployments: [{ database, templates: [{ folder: ddocFolder(files) }] }],
    deadAfterMs: 400,
    ...options,
  })

export interface Polling {
  /** The answer of each query in order of arrival; failures as text. */
  readonly answers: readonly (number | string)[]
  /** Milliseconds. */
  readonly slowest: number
  readonly stop: () => Promise<void>
}

/** Queries the view as users do, again and again, until the end of the test or `stop`. */
export function pollAllTheTime({ rows }: Shop): Polling {
  const answers: (number | string)[] = []
  const polling = { answers, slowest: 0, stop }
  let stopped = false
  const going = (async () => {
    while (!stopped) {
      const began = performance.now()
      answers.push(await rows().catch(String))
      polling.slowest = Math.max(polling.slowest, performance.now() - began)
      await sleep(10)
    }
  })()
  async function stop(): Promise<void> {
    stopped = true
    await going
  }
  onTestFinished(stop)
  return polling
}

/** Without repetitions: `[1, 1, 2, 2]` becomes `[1, 2]`. */
export const turns = (answers: readonly unknown[]): unknown[] =>
  answers.filter((answer, i) => i === 0 || answer !== answers[i - 1])
