import type { Doc, StoredDoc } from '../couch/documents.ts'
import type { Writer } from '../couch/writer.ts'
import type { Registry } from '../workers/registry.ts'
import type { ContextOptions } from './context.ts'
import type { Message } from './mail.ts'
import type { WriteDoc } from './write-doc.ts'

export interface WithoutEffectsOptions {
  /** Of the database. */
  readonly name: string
  /** A document as it is there. */
  readonly find: (id: string, signal: AbortSignal | undefined) => Promise<StoredDoc | undefined>
  /** What `ctx.mail.send` does beside taking the message down: what it throws is thrown there. */
  readonly onMail?: ((message: Message) => void) | undefined
}

/** What a handler would have done through its context, in its order. */
export interface Withheld {
  /** By `ctx.save`. */
  readonly saved: Doc[]
  /** By `ctx.put`. */
  readonly put: Doc[]
  readonly mails: Message[]
}

export type ContextWithoutEffects = Pick<ContextOptions, 'writer' | 'writeDoc' | 'mailer' | 'workers'> & {
  readonly database: Pick<ContextOptions['database'], 'name' | 'find'>
}

/** The parts of a context that write and send: here they take down what they are given, and the handler finds what it has put. */
export function withoutEffects({ name, find, onMail }: WithoutEffectsOptions): {
  readonly withheld: Withheld
  readonly parts: ContextWithoutEffects
} {
  const withheld: Withheld = { saved: [], put: [], mails: [] }
  const written = new Map<string, StoredDoc>()
  const known = async (id: string, signal?: AbortSignal) => written.get(id) ?? (await find(id, signal))

  const writeDoc: WriteDoc = (attempt, next) => {
    withheld.saved.push(next)
    attempt.doc = { ...next, _id: attempt.id, _rev: nextRev(attempt.doc._rev) }
    return Promise.resolve({ kind: 'stored' })
  }
  const writer: Writer = {
    async write(doc) {
      if ((await known(doc._id))?._rev !== doc._rev) return { kind: 'conflict' }
      const rev = nextRev(doc._rev)
      written.set(doc._id, { ...doc, _rev: rev })
      withheld.put.push(doc)
      return { kind: 'stored', rev }
    },
  }
  const mailer: ContextOptions['mailer'] = {
    forEntry: ({ done }) => ({
      done,
      async send(message) {
        onMail?.(message)
        withheld.mails.push(message)
      },
    }),
  }
  const database = {
    name,
    find: (id: string, _: unknown, { signal }: { signal?: AbortSignal | undefined } = {}) => known(id, signal),
  }
  return { withheld, parts: { writeDoc, writer, mailer, database, workers: noWorkers } }
}

/** Of `<number>-<hash>` the number counts up; the hash has no meaning here. */
export const nextRev = (rev: string | undefined): string => `${parseInt(rev ?? '0') + 1}-${'0'.repeat(32)}`

const noWorkers: Registry = {
  register: (role, id) => ({ role, id }),
  unregister: () => Promise.resolve(),
  members: () => undefined,
  subscribe: () => () => undefined,
  close: () => Promise.resolve(),
}
