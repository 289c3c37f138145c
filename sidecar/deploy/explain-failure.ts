import { isCouchError, type CouchError } from '../couch/errors.ts'
import type { DatabaseReport } from './report.ts'
import { DeployError, type DeployErrorCode } from './errors.ts'

/**
 * One message for what CouchDB, or the way to it, did to a deploy: what happened, what to do, and what had been
 * written before. Other errors are given back as they are.
 */
export function explainFailure(thrown: unknown, url: string, done: readonly DatabaseReport[]): unknown {
  if (!isCouchError(thrown)) return thrown
  const [code, text] = wordsFor(thrown, url)
  return new DeployError(code, [text, ...writtenBefore(done)], { cause: thrown })
}

function wordsFor(error: CouchError, url: string): readonly [DeployErrorCode, string] {
  switch (error.code) {
    case 'unreachable':
    case 'timeout':
      return ['server_unreachable', `cannot reach CouchDB at ${url} (${error.reason}): is it running there?`]
    case 'unauthorized':
    case 'forbidden':
      return [
        'not_admin',
        `CouchDB at ${url} refuses (${error.request}: ${error.reason}): design documents need an admin's name and password in COUCHDB_URL`,
      ]
    case 'garbled':
    case 'overloaded':
    case 'server':
    case 'not_found':
    case 'conflict':
    case 'exists':
    case 'too_large':
    case 'bad_request':
      return ['server_refused', `CouchDB at ${url} did not take it (${error.message})`]
    default:
      return error.code satisfies never
  }
}

function writtenBefore(done: readonly DatabaseReport[]): string[] {
  const written = done.flatMap(({ database, ddocs }) =>
    ddocs.filter(({ kind }) => kind === 'created' || kind === 'updated').map(({ id }) => `${database}/${id}`),
  )
  return written.length > 0 ? [`written before that: ${written.join(', ')}; another run does the rest`] : []
}
