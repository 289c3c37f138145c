/** Every database's changes in one feed, and settings that change while the sidecar runs. */
import { expect, test } from 'vitest'
import type { Database } from '../../sidecar/couch/database.ts'
import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { startRegistration } from './registration.ts'

const within = 20_000

async function start() {
  const { control, sidecar } = await startRegistration()
  const events = createTestCouch().db(control.eventsName)
  const told = (id: string) => eventually(async () => expect(await events.find(id)).toBeDefined(), { within })
  await told(`created:${control.name}`)
  return { control, sidecar, events, told }
}

test('what happens to databases is written down, the sidecar’s own too', async () => {
  const { control, told } = await start()
  const db = await freshDb('orders')
  await told(`created:${db.name}`)
  await db.put({ _id: 'a' })
  await told(`updated:${db.name}`)
  await control.admin.put({ _id: 'a', type: 'note' })
  await told(`updated:${control.name}`)
})

test(
  'a document in the control database switches it off and on, and nonsense is refused',
  { timeout: 90_000 },
  async () => {
    const { control, events, told } = await start()
    const _id = 'config:global_changes'
    await expect(control.admin.put({ _id, max_event_delay: -1 })).rejects.toMatchObject({ code: 'forbidden' })
    await expect(control.admin.put({ _id, update: false })).rejects.toMatchObject({ code: 'forbidden' })
    await expect(control.member.put({ _id, update_db: false })).rejects.toMatchObject({ code: 'forbidden' })

    const other = await start()
    const rev = await control.admin.put({ _id, update_db: false })
    const databases: Database[] = []
    const make = async () => {
      const db = await freshDb('orders')
      await other.told(`created:${db.name}`)
      databases.unshift(db)
      return events.find(`created:${db.name}`)
    }
    await eventually(async () => expect(await make()).toBeUndefined(), { within })
    databases.length = 0
    for (let i = 0; i < 5; i++) expect(await make()).toBeUndefined()
    await control.admin.remove(_id, rev)
    for (const db of databases) await told(`created:${db.name}`)
  },
)
