/** Documents that strangers cause are deleted in the end. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { controlMachines } from '../../ddocs/machines.ts'
import type { State } from '../../ddocs/machine.ts'
import type { Doc } from '../../sidecar/couch/documents.ts'
import { mailboxHashOf } from '../../sidecar/accounts/owner.ts'
import { guessesIdOf, userNameOf } from '../../sidecar/devices/device-names.ts'
import { takeMailQuota } from '../../sidecar/accounts/hourly-quota.ts'
import { createControlDb, newPerson, startWithOwner, startWorker, channel, inState } from '../channels/rig.ts'
import { eventually } from '../support/eventually.ts'

const past = new Date(Date.now() - 1000).toISOString()
/** As the sidecar leaves a document whose timeout is over. */
const timed = <D extends { readonly state: string }>(doc: D) => ({
  ...doc,
  docstate: { state: doc.state, timeout_at: past },
})
const device = { type: 'device', owner: 'ann@example.com', device_code: '1234' }

test('docs/retention.md says for each type of the control database when it is deleted', () => {
  const page = readFileSync(new URL('../../docs/retention.md', import.meta.url), 'utf8')
  const rows = [...page.matchAll(/^\| `(\w+)` .*\|(.*)\|$/gm)].map(([, type, ends]) => [type!, ends!] as const)
  expect(new Set(rows.map(([type]) => type))).toEqual(new Set([...Object.keys(controlMachines), 'user_database']))
  for (const [type, machine] of Object.entries(controlMachines) as [string, Readonly<Record<string, State>>][]) {
    const received = rows.find(([one]) => one === type)![1]
    for (const [state, { timeout }] of Object.entries(machine)) {
      if (timeout && 'afterMs' in timeout && ['forgotten', 'over', 'due'].includes(timeout.next))
        expect(received, type).toContain(`\`${state}\` ${inWords(timeout.afterMs)}`)
    }
  }
})

const inWords = (ms: number): string => {
  const [count, unit] =
    ms >= 86_400_000 ? [ms / 86_400_000, 'day'] : ms >= 3_600_000 ? [ms / 3_600_000, 'hour'] : [ms / 60_000, 'minute']
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

test('documents of strangers, and their quotas, are deleted after their timeout', async () => {
  const controlDb = createControlDb()
  const { couch, control } = await startWorker(controlDb)
  const user = userNameOf('failed')
  await couch.db('_users').put({
    _id: `org.couchdb.user:${user}`,
    type: 'user',
    name: user,
    roles: [],
    device_id: 'failed',
    password: 'x',
  })
  const over: Doc[] = [
    timed({ ...device, _id: 'expired', state: 'expired' }),
    timed({ ...device, _id: 'failed', state: 'error' }),
    timed({ _id: 'used', type: 'confirm', state: 'used', device_id: 'expired', device_code: '1234' }),
    timed({ _id: 'refused', type: 'confirm', state: 'error', device_id: 'expired', device_code: '1234' }),
    timed({ _id: `mails:${mailboxHashOf('ann@example.com')}`, type: 'mail_ledger', state: 'counting', mails: [] }),
    timed({ _id: 'canary:left', type: 'canary', state: 'arrived', worker: 'gone' }),
    timed({ _id: guessesIdOf('expired'), type: 'guesses', state: 'counting', guesses: [] }),
    timed({
      _id: 'invitation:1',
      type: 'invitation',
      state: 'needless',
      member: 'a@b',
      owner: 'c@d',
      record: 'channel:1',
      channel: 'x',
    }),
    timed({
      _id: 'invitation:2',
      type: 'invitation',
      state: 'sent',
      member: 'a@b',
      owner: 'c@d',
      record: 'channel:1',
      channel: 'x',
    }),
    timed({
      _id: 'ended:channel-none',
      type: 'channel_end',
      state: 'waiting',
      database: 'channel-none',
      close: 'archive',
    }),
  ]
  for (const doc of over) await control.put(doc)
  for (const { _id } of over) {
    await eventually(async () => expect(await control.find(_id), _id).toBeUndefined())
    const [tombstone] = await control.leaves(_id)
    expect(
      Object.keys(tombstone!).filter((field) => !field.startsWith('_')),
      _id,
    ).toEqual(expect.not.arrayContaining(['owner', 'member', 'device_code']))
  }
  expect(await couch.db('_users').find(`org.couchdb.user:${user}`)).toBeUndefined()
})

test('a quota document is deleted after its timeout, and counts again when it is used again', async () => {
  const controlDb = createControlDb()
  const { control } = await startWorker(controlDb)
  const documents = { find: (id: string) => control.find(id), put: (doc: Doc) => control.put(doc) }
  const [owner, id] = ['ann@example.com', `mails:${mailboxHashOf('ann@example.com')}`]
  expect(await takeMailQuota(documents, { owner, key: 'a' }, 1, Date.now() - 3_600_000)).toBe(true)
  await eventually(async () => expect(await control.find(id)).toBeUndefined())
  expect(await takeMailQuota(documents, { owner, key: 'b' }, 1, Date.now())).toBe(true)
  expect(await control.get(id)).toMatchObject({ state: 'counting', docstate: { state: 'counting' } })
})

test('an invitation is kept while its member is invited, and an unused account while it has a channel', async () => {
  const bob = newPerson('bob')
  const { couch, control, ann, own, mails } = await startWithOwner()
  await own.put(channel(ann, 'photos', { members: [bob.address] }))
  await inState(couch, own.name, 'photos', 'ready')
  const [invitation] = await eventually(async () => {
    const all = await control.withPrefix('invitation:')
    expect(all).toMatchObject([{ state: 'sent' }])
    return all
  })
  const again = await control.put(timed({ ...invitation!, state: 'sent' }))
  await eventually(async () => {
    const now = await control.get(invitation!._id)
    expect(now).toMatchObject({ state: 'sent' })
    expect(now._rev).not.toBe(again)
    expect((now.docstate as { timeout_at: string }).timeout_at > new Date().toISOString()).toBe(true)
  })
  expect(mails).toHaveLength(1)

  await own.put({ ...(await own.get('photos')), state: 'new', members: [] })
  await eventually(async () => {
    const accounts = await control.withPrefix('account:')
    expect(accounts.map(({ address }) => address)).toEqual([ann.address])
  })
})
