import { Readable } from 'node:stream'
import type { Doc, StoredDoc } from '../couch/documents.ts'
import type { CallOptions, Database, Download } from '../couch/database.ts'
import { CouchError } from '../couch/couch-errors.ts'
import type { Writer } from '../couch/writer.ts'
import type { Registry } from '../workers/registry.ts'
import { stepsDone } from './attempt.ts'
import { docstateOf } from './classify.ts'
import type { ContextOptions } from './context.ts'
import type { Message } from './mail.ts'
import type { WriteDoc } from './write-doc.ts'

export interface WithoutEffectsOptions {
  /** Name of the database. */
  readonly name: string
  /** Reads a document of the database. */
  readonly find: (id: string, signal: AbortSignal | undefined) => Promise<StoredDoc | undefined>
  /** Reads a document of another database. */
  readonly findIn: (database: string, id: string, signal: AbortSignal | undefined) => Promise<StoredDoc | undefined>
  /** Whether a database exists. Default: any exists. */
  readonly hasDatabase?: ((name: string) => boolean) | undefined
  /** Reads an attachment of a document. Default: none exists. */
  readonly attachment?: (
    database: string,
    id: string,
    name: string,
    signal: AbortSignal,
  ) => Promise<Download | undefined>
  /** Whether bodies of long attachments are read into memory. Default: they are read and dropped. */
  readonly keepsLong?: boolean
  /** Called by `ctx.mail.send`, which throws what this function throws and otherwise records the message. */
  readonly onMail?: ((message: Message) => void) | undefined
}

/** The withheld effects of a handler, in order. */
export interface Withheld {
  /** Documents saved by `ctx.save`. */
  readonly saved: Doc[]
  /** Documents written by `ctx.put`. */
  readonly put: Doc[]
  /** Documents written by `ctx.db(…).put`. */
  readonly putElsewhere: { readonly database: string; readonly doc: Doc }[]
  readonly mails: Message[]
  /** Attachments stored by `ctx.attach`; a long one may have no body. */
  readonly attached: { readonly name: string; readonly type: string; readonly body: Buffer }[]
}

export type ContextWithoutEffects = Pick<ContextOptions, 'writer' | 'writeDoc' | 'mailer' | 'workers'> & {
  readonly database: ContextOptions['database']
}

/** Context parts that only record writes and mails. The handler finds the documents that it has put. */
export function withoutEffects(options: WithoutEffectsOptions): {
  readonly withheld: Withheld
  readonly parts: ContextWithoutEffects
} {
  const {
    name,
    find,
    findIn,
    hasDatabase = () => true,
    onMail,
    attachment = () => Promise.resolve(undefined),
  } = options
  const withheld: Withheld = { saved: [], put: [], putElsewhere: [], mails: [], attached: [] }
  const own = overlay(find)
  const others = new Map<string, ReturnType<typeof overlay>>()
  const otherOf = (database: string) => {
    const known = others.get(database) ?? overlay((id, signal) => findIn(database, id, signal))
    others.set(database, known)
    return known
  }
  const writeDoc: WriteDoc = async (attempt, next, { write } = {}) => {
    if (write) await write(attempt.doc)
    else if (stepsIn(next) === stepsIn(attempt.doc)) withheld.saved.push(next) // otherwise a step's result is written
    attempt.doc = { ...next, _id: attempt.id, _rev: nextRev(attempt.doc._rev) }
    return { kind: 'stored' }
  }
  const writer: Writer = {
    async write(doc) {
      const rev = await own.put(doc)
      if (rev === undefined) return { kind: 'conflict' }
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
  const beside = (database: string): Database => {
    const other = otherOf(database)
    const put = async (doc: Doc) => {
      const request = `PUT ${database}/${doc._id}`
      if (!hasDatabase(database))
        throw new CouchError('not_found', { request, status: 404, reason: 'Database does not exist.' })
      const rev = await other.put(doc)
      if (rev === undefined)
        throw new CouchError('conflict', { request, status: 409, reason: 'Document update conflict.' })
      withheld.putElsewhere.push({ database, doc })
      return rev
    }
    const attachmentOf = (id: string, attached: string, signal: AbortSignal) =>
      attachment(database, id, attached, signal)
    return { name: database, put, find: other.find, attachment: attachmentOf } as Partial<Database> as Database
  }
  const database: ContextWithoutEffects['database'] = {
    ...{ name, find: own.find, beside },
    async attachment(id, attachmentName, signal) {
      const own = withheld.attached.findLast(({ name }) => name === attachmentName)
      return own ? { type: own.type, bytes: Readable.from([own.body]) } : attachment(name, id, attachmentName, signal)
    },
    async attach({ _rev }, attached, { type, bytes }) {
      const chunks: Uint8Array[] = []
      for await (const chunk of bytes instanceof Uint8Array ? [bytes] : bytes) {
        if (options.keepsLong || bytes instanceof Uint8Array) chunks.push(chunk)
      }
      withheld.attached.push({ name: attached, type, body: Buffer.concat(chunks) })
      return nextRev(_rev)
    },
  }
  return { withheld, parts: { writeDoc, writer, mailer, database, workers: noWorkers } }
}

const stepsIn = (doc: Doc): number => Object.keys(stepsDone(docstateOf(doc))).length

/** The documents of the database, covered by those written here. */
function overlay(find: WithoutEffectsOptions['find']) {
  const written = new Map<string, StoredDoc>()
  const known = async (id: string, signal?: AbortSignal) => written.get(id) ?? (await find(id, signal))
  return {
    find: (id: string, _: unknown, { signal }: CallOptions = {}) => known(id, signal),
    /** Undefined if the document has changed. */
    async put(doc: Doc): Promise<string | undefined> {
      if ((await known(doc._id))?._rev !== doc._rev) return undefined
      const rev = nextRev(doc._rev)
      written.set(doc._id, { ...doc, _rev: rev })
      return rev
    },
  }
}

/** The next revision, `<number>-<hash>`: the number counts up, the hash has no meaning here. */
export const nextRev = (rev: string | undefined): string => `${parseInt(rev ?? '0') + 1}-${'0'.repeat(32)}`

const noWorkers: Registry = {
  register: (role, id) => ({ role, id }),
  unregister: () => Promise.resolve(),
  members: () => undefined,
  subscribe: () => () => undefined,
  close: () => Promise.resolve(),
}
