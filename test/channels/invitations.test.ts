import { expect, test } from 'vitest'
import { normaliseAddress } from '../../sidecar/accounts/owner.ts'
import { ownerHashOf } from '../../sidecar/accounts/owner.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import { eventually } from '../support/eventually.ts'
import { channel, inState, newPerson, startWithOwner, type Person } from './rig.ts'

async function start(invitesPerOwner: number, ...members: Person[]) {
  const all = await startWithOwner({ config: { invitesPerOwner } })
  const { couch, ann, own } = all
  await own.put(channel(ann, 'photos', { members: members.map(({ address }) => address) }))
  await inState(couch, own.name, 'photos', 'ready')
  return all
}

/** All invitations, once they are in these states, in any order. */
const inStates = (control: Database, ...states: string[]) =>
  eventually(async () => {
    const invitations = await control.withPrefix('invitation:')
    expect(invitations.map(({ state }) => state).sort()).toEqual([...states].sort())
    return invitations
  })

const linesOf = async (control: Database, ledger: string, { address }: Person) =>
  ((await control.find(`invitations:${ledger}-${ownerHashOf(normaliseAddress(address))}`))?.mails ??
    []) as readonly unknown[]

test('an invitation over the owner’s quota waits, and is sent when the quota allows it', async () => {
  const strangers = [newPerson('bob'), newPerson('carl')]
  const { control, mails, ann } = await start(1, ...strangers)
  const invitations = await inStates(control, 'sent', 'waiting')
  const waiting = invitations.find(({ state }) => state === 'waiting')!
  expect(waiting).not.toHaveProperty('error')
  expect(mails).toHaveLength(1)
  const other = strangers.find(({ address }) => address === waiting.member)!
  expect(await linesOf(control, 'to', other)).toEqual([])

  const ledger = await control.get(`invitations:by-${ownerHashOf(normaliseAddress(ann.address))}`)
  await control.put({ ...ledger, mails: [] }) // as if an hour had passed
  const docstate = { state: 'waiting', timeout_at: new Date().toISOString() }
  await control.put({ ...waiting, docstate })
  await inStates(control, 'sent', 'sent')
  expect(mails.map(({ to }) => to).sort()).toEqual(strangers.map(({ address }) => address).sort())
})

test('an invitation that its member’s quota refuses does not use the owner’s quota', async () => {
  const bob = newPerson('bob')
  const { control, ann, own } = await start(20)
  const at = new Date().toISOString()
  const mails = ['a', 'b', 'c'].map((key) => ({ key, at }))
  await control.put({ _id: `invitations:to-${ownerHashOf(normaliseAddress(bob.address))}`, type: 'mail_ledger', mails })
  await own.put({ ...(await own.get('photos')), state: 'new', members: [bob.address] })
  await inStates(control, 'waiting')
  expect(await linesOf(control, 'by', ann)).toEqual([])
})

test.each(['needless', 'error'])('an invitation in state %s starts again with the next request', async (state) => {
  const { control, controlDb, couch, own } = await start(0, newPerson('bob'))
  const [waiting] = await inStates(control, 'waiting')
  const { docstate: _docstate, ...ended } = waiting!
  await control.put({ ...ended, state })
  await own.put({ ...(await own.get('photos')), state: 'new', data: { color: 'red' } })
  const again = await inState(couch, controlDb, waiting!._id, 'waiting')
  expect(again._rev).not.toBe(waiting!._rev)
})

test.each(['see evil.example', 'https://evil', 'call eve@example.com'])(
  'a channel whose name contains a link or an address sends no invitation: %s',
  async (name) => {
    const { couch, control, ann, own, mails } = await startWithOwner()
    await own.put(channel(ann, 'photos', { name, members: [newPerson('bob').address] }))
    const { error } = await inState(couch, own.name, 'photos', 'error')
    expect(error).toMatchObject({
      code: 'bad_channel',
      reason: expect.stringContaining('name: expected no link') as string,
    })
    expect(await control.withPrefix('invitation:')).toEqual([])
    expect(mails).toEqual([])
  },
)
