import { failureOf } from '../core/failure.ts'
import { isCouchError, type CouchError } from '../couch/couch-errors.ts'
import { DeployError, type DeployErrorCode } from './deploy-errors.ts'

/**
 * Turns an error of CouchDB, the network or a signal into one message. It says what happened, what to do, and how far
 * the deploy came (`progress`, from `describeProgress`). Other errors are returned unchanged.
 */
export function explainFailure(thrown: unknown, url: string, progress: readonly string[]): unknown {
  if (isCouchError(thrown)) {
    const [code, text] = wordsFor(thrown, url)
    return new DeployError(code, [text, ...progress], { cause: thrown })
  }
  if (progress.length === 0) return thrown
  return new DeployError('stopped', [failureOf(thrown).reason, ...progress], { cause: thrown })
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
      return ['server_refused', `CouchDB at ${url} did not store it (${error.message})`]
    default:
      return error.code satisfies never
  }
}
