/** Compares the actual state of channels with the requested one. */
import { isRecord, type ChannelRecord } from '../../sidecar/channels/channel-documents.ts'
import type { DbName } from '../../sidecar/accounts/account-names.ts'
import { normaliseAddress } from '../../sidecar/accounts/owner.ts'
import { subscriptionIdOf } from '../../sidecar/channels/channel-names.ts'
import type { Couch } from '../../sidecar/couch/client.ts'
import type { StoredDoc } from '../../sidecar/couch/documents.ts'
import type { Person, ChannelRequest } from './people.ts'
import { CONTROL_DB } from './trio.ts'
import { answerOf } from '../support/answers.ts'

/** Returns one line for each difference, and none when the state is as requested. */
export async function differences(
  couch: Couch,
  people: readonly Person[],
  requests: readonly ChannelRequest[],
): Promise<string[]> {
  const lines: string[] = []
  const expect = (what: string, wanted: unknown, got: unknown) => {
    const [one, other] = [wanted, got].map((value) => JSON.stringify(value))
    if (one !== other) lines.push(`${what}: expected ${one}, got ${other}`)
  }
  const control = await couch.db(CONTROL_DB).withPrefix('')
  const records = control.filter(isRecord)
  const recordOf = (request: ChannelRequest) =>
    records.find(({ owner, document }) => owner === request.owner.address && document === request.id)
  const isIn = (person: Person, record: ChannelRecord) =>
    record.state === 'ready' && [record.owner, ...record.members].includes(normaliseAddress(person.address))

  /** Databases of channels that were closed before their database was known: they may exist or not. */
  const unmade = new Set<string>()
  expect('records', new Set(records.map(({ owner, document }) => `${owner} ${document}`)).size, records.length)
  for (const request of requests) {
    const [record, doc] = [recordOf(request), await request.owner.database.find(request.id)]
    const name = `${request.id} of ${request.owner.address}`
    expect(`${name}: its document`, request.isOpen ? 'ready' : 'closed', doc?.state)
    if (request.isOpen || record) expect(`${name}: its record`, request.isOpen ? 'ready' : 'closed', record?.state)
    if (request.isOpen) {
      expect(`${name}: its members`, [...request.members].sort(), [...(record?.members ?? [])].sort())
      expect(`${name}: its data`, request.data, record?.data)
    }
    const ends = record ? endsOf(record) : []
    const known = request.ends.slice(request.ends.length - ends.length) // the oldest ends may have been dropped
    const closes = [known, ends].map((all) => all.map(({ close }) => close))
    expect(`${name}: its ends`, closes[0], closes[1])
    for (const [index, { database }] of ends.entries()) if (known[index]?.isCalledOff) unmade.add(database)
  }

  const kept = records.flatMap((record) => endsOf(record).filter(({ close }) => close === 'archive'))
  const open = records.filter(({ state }) => state === 'ready')
  const wanted = [...kept, ...open].map(({ database }) => database)
  const all = await answerOf<string[]>(couch, { path: '_all_dbs' })
  const found = all.filter((name) => name.startsWith('channel-'))
  const missing = wanted.filter((name) => !found.includes(name) && !unmade.has(name))
  expect('databases of channels', [[], []], [missing, found.filter((name) => !wanted.includes(name as DbName))])
  expect('databases of users', people.length, all.filter((name) => name.startsWith('userdb-')).length)

  for (const person of people) {
    const docs = await person.database.withPrefix('')
    const mine = records.filter((record) => isIn(person, record))
    const roles = (await couch.db('_users').find(`org.couchdb.user:${person.user}`))?.roles as string[]
    expect(
      `${person.address}: roles`,
      [...mine.map(({ role }) => role)].sort(),
      roles.filter((role) => role !== person.role).sort(),
    )
    const ready = docs.filter(({ type, state }) => type === 'channel' && state === 'ready')
    expect(
      `${person.address}: channels`,
      mine.map(({ database }) => database).sort(),
      ready.map((doc) => String(doc.database)).sort(),
    )
    for (const doc of ready.filter(({ database }) => !mine.some((record) => record.database === database))) {
      const record = records.find(({ _id, document }) => _id === doc._id || document === doc._id)
      lines.push(`${person.address}: ${JSON.stringify(doc)} beside ${JSON.stringify(record)}`)
    }
    for (const { _id, owner, members, data } of mine.filter((record) => record.owner !== person.address)) {
      const copy = docs.find((doc) => doc._id === _id)
      expect(
        `${person.address}: the reported state of ${_id}`,
        [owner, members, data],
        [copy?.owner, copy?.members, copy?.data],
      )
    }
    for (const { _id } of ready) {
      const subscription = docs.find((doc) => doc._id === subscriptionIdOf(_id))
      const state = _id.startsWith('channel:') ? 'invite' : 'active'
      expect(`${person.address}: subscription for ${_id}`, state, subscription?.state)
    }
    lines.push(...faultsAmong(docs))
  }
  const addresses = control.filter(({ type }) => type === 'account').map(({ address }) => String(address))
  expect('accounts of one address', addresses.length, new Set(addresses).size)
  return [...lines, ...faultsAmong(control)]
}

const endsOf = (record: ChannelRecord) => [
  ...(record.ended ?? []),
  ...(record.state === 'closed' ? [{ database: record.database, close: record.close }] : []),
]

/** Requests that must fail are checked separately (`answersTo`). */
const isInVain = ({ _id }: StoredDoc): boolean => /^(twin|faulty)-/.test(_id)

const faultsAmong = (docs: readonly StoredDoc[]): string[] =>
  docs
    .filter((doc) => (doc.state === 'error' && !isInVain(doc)) || doc._conflicts !== undefined)
    .map((doc) => `in error: ${JSON.stringify(doc)}`)
