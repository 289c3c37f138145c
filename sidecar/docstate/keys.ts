import { failureOf } from '../core/failure.ts'
import { Reject } from '../core/errors.ts'
import type { StoredDoc } from '../couch/documents.ts'
import type { Registration } from './types.ts'

/** Maximum documents per key that wait in memory; of further ones only the id is kept. */
const FEW = 4
/** Maximum ids that wait, per handler and database; a resync finds further ones. */
const MOST_IDS = 10_000

interface Line {
  /** Waiting work. Each item begins when the previous one has ended. */
  readonly next: (() => void)[]
  readonly ids: Set<string>
}

/** Runs documents of one handler with the same key one at a time. */
export class Keys {
  readonly #lines = new Map<string, Line>()
  readonly #lookAgain: (id: string) => void
  #ids = 0

  constructor(lookAgain: (id: string) => void) {
    this.#lookAgain = lookAgain
  }

  /** Whether enough documents wait for this key. If so, `lookAgain` gets the id when fewer wait. */
  isFull(key: string, id: string): boolean {
    const line = this.#lines.get(key)
    if (!line || line.next.length < FEW) return false
    if (this.#ids < MOST_IDS && !line.ids.has(id)) {
      line.ids.add(id)
      this.#ids += 1
    }
    return true
  }

  /** Runs the work when no other work of this key runs. */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const line = this.#lines.get(key)
    if (line) await new Promise<void>((resolve) => line.next.push(resolve))
    else this.#lines.set(key, { next: [], ids: new Set() })
    try {
      return await work()
    } finally {
      this.#end(key)
    }
  }

  #end(key: string): void {
    const { next, ids } = this.#lines.get(key)!
    const [id] = ids
    if (id !== undefined) {
      ids.delete(id)
      this.#ids -= 1
      this.#lookAgain(id)
    }
    const begin = next.shift()
    if (begin) begin()
    else {
      for (const left of ids) this.#lookAgain(left)
      this.#ids -= ids.size
      this.#lines.delete(key)
    }
  }
}

/**
 * The key of a document, by its handler's `key`; undefined without one.
 *
 * @throws Reject if `key` throws or returns an invalid value
 */
export function keyOf({ options: { key } }: Pick<Registration, 'options'>, doc: StoredDoc): string | undefined {
  if (!key) return undefined
  let given: unknown
  try {
    given = key(doc)
  } catch (thrown) {
    throw new Reject('bad_key', `the handler's key throws on this document: ${failureOf(thrown).reason}`)
  }
  if (given === undefined || given === null) return undefined
  if (typeof given === 'string' || typeof given === 'number') return String(given)
  throw new Reject('bad_key', `the handler's key of this document: expected a string, got ${typeof given}`)
}

/** As `keyOf`, but undefined instead of `Reject`: the handler's run reports the error. */
export function keyOrNone(registration: Pick<Registration, 'options'>, doc: StoredDoc): string | undefined {
  try {
    return keyOf(registration, doc)
  } catch {
    return undefined
  }
}
