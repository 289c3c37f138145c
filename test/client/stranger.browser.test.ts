/** What a stranger with a registered device, who knows all addresses, can find out about other users. */
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { accountIdOf, userDatabaseOf, userDatabasesOf } from '../../sidecar/accounts/account-names.ts'
import { databaseNameOf, recordIdOf } from '../../sidecar/channels/channel-names.ts'
import { normaliseAddress, ownerHashOf, ownerRoleOf } from '../../sidecar/accounts/owner.ts'
import { createTestCouch, needs, uniqueName } from '../support/couchdb.ts'
import { thoroughTest } from '../support/thorough.ts'
import {
  ask,
  asBasic,
  keptBy,
  openApp,
  registerApp,
  shareBrowserStage,
  statusOf,
  untilStatus,
  write,
  type PageRequest,
} from './browser-stage.ts'

const openStage = shareBrowserStage()

const readings = (db: string): PageRequest[] => [
  ...['', '/_all_docs', '/_changes', '/_security', '/_design_docs', '/_local_docs', '/description', '/note'].map(
    (path) => ({ method: 'GET', path: `/couchdb/${db}${path}` }),
  ),
  { method: 'HEAD', path: `/couchdb/${db}` },
  { method: 'POST', path: `/couchdb/${db}/_find`, body: { selector: {} } },
  { method: 'POST', path: `/couchdb/${db}/_bulk_get`, body: { docs: [{ id: 'note' }] } },
  { method: 'PUT', path: `/couchdb/${db}/mine`, body: {} },
]

const inHex = (text: string) => Buffer.from(text).toString('hex')
const hashOf = (text: string) => createHash('sha256').update(text).digest('hex')

/** Names of databases that a stranger could guess from an address, the name of a channel, and the naming rules. */
function guessesOf(address: string, channel: string, controlDb: string): string[] {
  const [local] = address.split('@')
  const owner = normaliseAddress(address)
  const owners = [address, local!, hashOf(address), ownerHashOf(owner), ownerRoleOf(owner), accountIdOf(owner)]
  const prefixes = ['userdb-', userDatabaseOf('user-'), userDatabasesOf(controlDb).replace('*', '')]
  const users = owners.flatMap((owner) => prefixes.map((prefix) => prefix + inHex(owner)))
  const hashes = [address, channel, ...owners.map((owner) => owner + channel)].map(hashOf)
  const channels = owners.flatMap((owner) => [
    databaseNameOf(owner, channel, 1),
    recordIdOf(owner, channel).replace(':', '-'),
    `channel-${hashOf(JSON.stringify([owner, channel])).slice(0, 32)}`,
  ])
  return [
    ...['userdb-616e6e', 'channel-secret', 'secret-plans', `channel-${inHex(channel)}`, `userdb-${hashOf(address)}`],
    ...[...users, ...channels, ...hashes.flatMap((hash) => [`channel-${hash}`, `channel-${hash.slice(0, 32)}`])],
  ]
}

thoroughTest(
  'a stranger can read no document and no name, and cannot find out whether a guessed database exists',
  async () => {
    needs('browser')
    needs('guarded find')
    needs('refusals by status')
    const stage = await openStage()
    const { control } = stage.registration
    const [ann, eve] = [`${uniqueName('ann')}@example.com`, `${uniqueName('eve')}@example.com`]
    const phone = await openApp(stage)
    await registerApp(stage, phone, ann, 'phone')
    const id = await phone.page.evaluate(() => client.createChannel({ name: 'secret plans' }))
    await write(phone, id, 'note')
    await untilStatus(phone, ({ channels }) => channels[0]?.sync.state === 'live')

    const stranger = await openApp(stage)
    await registerApp(stage, stranger, eve, 'eve')
    await untilStatus(stranger, ({ devices }) => devices.length === 1)
    expect((await statusOf(stranger)).channels).toEqual([])
    const [own, others] = [await keptBy(stranger), await keptBy(phone)]
    const evesOwn = asBasic(own)
    expect((await ask(stranger, { method: 'GET', path: `/couchdb/${own.database}` }, evesOwn)).status).toBe(200)
    const record = (await control.admin.withPrefix('channel:')).find(({ owner }) => owner === ann)
    const channel = String(record!.database)
    const databases = [channel, control.name, others.database]
    const guesses = guessesOf(ann, 'secret plans', control.name)
    for (const db of databases) expect(guesses).not.toContain(db)
    for (const known of [ann, ownerHashOf(normaliseAddress(ann))]) {
      expect(others.database).not.toContain(known)
      expect(others.database).not.toContain(inHex(known))
    }

    for (const authorization of [undefined, evesOwn]) {
      for (const db of databases) {
        for (const requested of readings(db)) {
          const { status, text } = await ask(stranger, requested, authorization)
          expect([401, 403], `${requested.method} ${requested.path}`).toContain(status)
          for (const secret of ['secret plans', 'note', ann, id]) expect(text).not.toContain(secret)
        }
      }
      const answerTo = async (db: string) => {
        const { status, text } = await ask(stranger, { method: 'GET', path: `/couchdb/${db}` }, authorization)
        return { status, text: text.replaceAll(db, 'its name') }
      }
      const unknown = await answerTo(uniqueName('userdb'))
      for (const db of databases)
        expect(await answerTo(db), 'CouchDB reports which databases exist').not.toEqual(unknown)
      for (const guess of guesses) expect(await answerTo(guess), guess).toEqual(unknown)
      const all = await ask(stranger, { method: 'GET', path: '/couchdb/_all_dbs' }, authorization)
      expect([401, 403]).toContain(all.status)
      for (const path of ['_users/_all_docs', `_users/org.couchdb.user:${others.user}`, '_dbs_info', '_active_tasks']) {
        const { status, text } = await ask(stranger, { method: 'GET', path: `/couchdb/${path}` }, authorization)
        expect([401, 403, 404, 405], path).toContain(status)
        expect(text).not.toContain(ann)
      }
    }
    expect(await createTestCouch().db(channel).get('note')).toMatchObject({ _id: 'note' })
  },
)

test('the inbox gives a stranger the same answer for existing and missing documents', async () => {
  needs('browser')
  const stage = await openStage()
  const { control } = stage.registration
  const phone = await openApp(stage)
  const ann = `${uniqueName('ann')}@example.com`
  await registerApp(stage, phone, ann, 'phone')
  const { id } = await keptBy(phone)
  const stranger = await openApp(stage)
  const device = (await control.admin.withPrefix('inbox-')).find((doc) => doc.type === 'device' && doc.owner === ann)
  const answers = []
  for (const path of [id, device!._id, 'nobody', `device-${'0'.repeat(32)}`]) {
    for (const authorization of [undefined, 'Bearer wrong', 'Basic YTpi']) {
      answers.push(await ask(stranger, { method: 'GET', path: `/inbox/${path}` }, authorization))
    }
  }
  expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1)
  expect(answers[0]!.status).toBe(404)
  for (const path of ['_all_docs', '_changes', '_find', '_bulk_get', '_design/docstate', '_security']) {
    const { status, text } = await ask(stranger, { method: 'GET', path: `/inbox/${path}` })
    expect(status, path).toBe(403)
    expect(text).not.toContain(device!._id)
  }
})
