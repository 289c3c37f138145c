/** Full-text indexes: Clouseau's `search` and `nouveau`. A build request waits, and no running build is reported. */
import { z } from 'zod'
import { CouchError, isCouchError } from '../../couch/couch-errors.ts'
import type { Index } from '../indexes-of.ts'
import type { Kind, Servers } from './kind.ts'
import { segment } from '../../couch/path.ts'

/** After this time the server continues to build, and the sidecar polls the progress. */
const BUILD_MS = 60_000

const answer = z.object({ search_index: z.record(z.string(), z.unknown()).optional() })

interface FullText {
  readonly servers: Servers
  readonly info: string
  /** Field of the `info` answer with the index's position, in spite of its name. */
  readonly seq: string
  readonly query: string
  readonly options: Readonly<Record<string, string | number | boolean>>
}

export const ofSearch = (servers: Servers): Kind =>
  fullText({ servers, info: '_search_info', seq: 'pending_seq', query: '_search', options: { q: '*:*', limit: 0 } })

/** `nouveau` refuses a limit of 0. */
export const ofNouveau = (servers: Servers): Kind =>
  fullText({
    ...{ servers, info: '_nouveau_info', seq: 'update_seq', query: '_nouveau' },
    options: { q: '*:*', limit: 1, update: true },
  })

function fullText({ servers, info, seq: field, query, options }: FullText): Kind {
  const pathOf = ({ ddoc, name }: Index, what: string) =>
    `_design/${segment(ddoc.slice('_design/'.length))}/${what}/${segment(name)}`

  const queryIndex = async (index: Index, signal: AbortSignal) => {
    const path = pathOf(index, query)
    await servers.patient.request({ db: index.database, path, query: options, signal, timeoutMs: BUILD_MS })
  }

  return {
    async read(index, target, signal) {
      const path = pathOf(index, info)
      const { search_index } = await servers.quick.request({ db: index.database, path, signal }, answer)
      const seq = search_index?.[field]
      if (typeof seq !== 'number') {
        throw new CouchError('garbled', {
          request: `GET /${index.database}/${path}`,
          reason: `no ${field} in the answer`,
        })
      }
      return { seq, lag: Math.max(0, target - seq), isRunning: false }
    },
    async build(index, _target, signal) {
      try {
        await queryIndex(index, signal)
      } catch (thrown) {
        if (!isCouchError(thrown, 'timeout')) throw thrown
      }
    },
    query: queryIndex,
  }
}
