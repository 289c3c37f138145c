/** The pages of the operator beside what is stuck: lists, machines, users, indexes, graphs, the canary. */
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { needs } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { silence, startFaultyProxy } from '../support/faulty-proxy.ts'
import { recordDoc } from '../../sidecar/deploy/staging/record.ts'
import { accessibilityOf, admin, signIn, startShop, textOf } from './shop.ts'

test('a list of many is paged, and a document is found by what its id begins with', async () => {
  needs('browser')
  const { sidecar, orders } = await startShop()
  const docs = Array.from({ length: 250 }, (_, n) => ({
    _id: `rest-${String(n).padStart(3, '0')}`,
    type: 'order',
    state: 'shipped',
  }))
  await orders.bulk(docs.map((doc) => JSON.stringify(doc)))
  const { page } = await signIn(sidecar, admin(), `/documents?type=order&state=shipped&status=ready`)
  await eventually(async () => {
    await page.reload()
    expect(await textOf(page)).toMatch(/The first 100 of 25\d documents/)
  })
  const seen = new Set<string>()
  for (let pages = 1; ; pages++) {
    for (const text of await page.locator('tbody th').allInnerTexts()) seen.add(text)
    const more = page.getByRole('link', { name: 'Go on' })
    if ((await more.count()) === 0) break
    expect(pages).toBeLessThan(4)
    await more.click()
  }
  expect(docs.every(({ _id }) => seen.has(_id))).toBe(true)
  await page.getByLabel('Id, or what it begins with').fill('rest-01')
  await page.getByRole('button', { name: 'Search' }).click()
  expect(await textOf(page)).toContain('10 documents.')
  await page.getByRole('link', { name: 'rest-017' }).click()
  expect(await textOf(page)).toContain('rest-017 in ')
  const wrong = await page.goto(`${sidecar.url}/documents?after=nowhere`)
  expect(wrong?.status()).toBe(400)
})

test('conflicting revisions are side by side, hidden until they are asked for', async () => {
  needs('browser')
  const { sidecar, orders } = await startShop()
  const order = { _id: 'twice', type: 'note', state: 'kept', same: 'a secret' } // of no handler: none resolves it
  const leaf = (digest: string, email: string) => ({
    ...order,
    email,
    _rev: `1-${digest}`,
    _revisions: { start: 1, ids: [digest] },
  })
  await orders.merge([leaf('a'.repeat(32), 'ann@example.com'), leaf('b'.repeat(32), 'bob@example.com')])
  const { page } = await signIn(sidecar, admin(), `/document?db=${orders.name}&id=twice`)
  const table = page.getByRole('region', { name: 'Conflicting revisions' })
  await eventually(async () => {
    await page.reload()
    expect(await table.count()).toBe(1)
  })
  expect(await table.locator('tbody th').allInnerTexts()).toEqual(['email'])
  expect(await table.innerText()).not.toContain('example.com')
  await page.getByRole('button', { name: 'Show them' }).click()
  const shown = await table.innerText()
  for (const text of [`1-${'a'.repeat(32)}`, 'ann@example.com', 'bob@example.com']) expect(shown).toContain(text)
})

test('a machine is drawn with how many documents stand where, and a box leads to them', async () => {
  needs('browser')
  const { sidecar, control } = await startShop()
  const { page } = await signIn(sidecar, admin(), '/machines')
  await eventually(async () => {
    await page.reload()
    expect(await textOf(page)).toContain('device')
    const drawn = await page.getByRole('region', { name: `States of device in ${control.name}` }).innerText()
    for (const text of ['new', 'confirming', 'after 24 h']) expect(drawn).toContain(text)
  })
  await control.admin.put({
    _id: 'waits',
    type: 'device',
    state: 'expired',
    owner: 'ann@example.com',
    device_code: '1234',
  })
  await eventually(async () => {
    await page.reload()
    const drawn = await page.getByRole('region', { name: `States of device in ${control.name}` }).innerText()
    expect(drawn).toMatch(/expired\s+waits\s+1 timeout/)
  })
  await page.getByRole('link', { name: /^expired/ }).click()
  expect(await textOf(page)).toContain('waits')
})

test('a user’s devices are shown by the address, mailed again and revoked, and it is written down by whom', async () => {
  needs('browser')
  const { sidecar, control } = await startShop()
  const owner = `${randomBytes(4).toString('hex')}@example.com`
  const device = { type: 'device', owner, device_code: '1234', name: 'phone' }
  await control.admin.put({ ...device, _id: 'waits', state: 'confirming' })
  await control.admin.put({ ...device, _id: 'other', state: 'confirming', owner: 'bob@example.com' })
  const { page, faults } = await signIn(sidecar, admin(), '/person')
  await page.getByLabel('Email address of a user').fill(owner.toUpperCase())
  await page.getByRole('button', { name: 'Show' }).click()
  expect(await textOf(page)).toContain('There is no account yet')
  expect(await page.getByRole('row', { name: 'phone' }).count()).toBe(1)
  await page.getByRole('button', { name: 'Send the mail again' }).click()
  await page.getByRole('button', { name: 'Yes, send it' }).click()
  expect(await textOf(page)).toContain('1 mail is asked for.')
  await eventually(async () => {
    const doc = await control.admin.get<{ state: string; confirmation?: { codes: unknown[] } }>('waits')
    expect([doc.state, doc.confirmation?.codes.length]).toEqual(['confirming', 1])
  })
  await page.getByRole('link', { name: 'Go back' }).click()
  await page.getByRole('button', { name: 'Revoke' }).click()
  await page.getByRole('button', { name: 'Yes, revoke' }).click()
  await eventually(async () => expect((await control.admin.get('waits')).state).toBe('revoked'))
  expect(sidecar.log).toContainEqual(
    expect.objectContaining({ msg: 'an operator has acted', verb: 'revoke', id: 'waits', by: admin().name }),
  )
  const own = sidecar.log.filter(({ msg }) => msg !== 'mail caught')
  expect(JSON.stringify(own), 'the address is in no log').not.toContain(owner)
  expect((await control.admin.get('other')).state).toBe('confirming')
  expect(faults).toEqual([])
})

test('indexes are told, also while there are none behind', async () => {
  needs('browser')
  const { sidecar } = await startShop()
  const { page } = await signIn(sidecar, admin(), '/indexes')
  await eventually(
    async () => {
      await page.reload()
      expect(await textOf(page)).toMatch(/\d+ index(es)?, as fresh/)
    },
    { within: 60_000 },
  )
})

test('graphs are drawn of what happened lately, and all that the page loads is less than 100 KB', async () => {
  needs('browser')
  const { sidecar } = await startShop()
  const { page, faults } = await signIn(sidecar, admin(), '/sign-in')
  let bytes = 0
  page.on(
    'response',
    (response) =>
      void response.body().then(
        ({ length }) => (bytes += length),
        () => undefined, // of a page that was left
      ),
  )
  await page.goto(sidecar.url)
  await eventually(async () => expect(await page.locator('#graphs canvas').count()).toBe(4))
  expect(await page.getByRole('img', { name: /^Handled and failed, a second, last hour; at last: done/ }).count()).toBe(
    1,
  )
  await page.getByRole('button', { name: 'Last day' }).click()
  expect(await page.getByRole('img', { name: /last day/ }).count()).toBe(4)
  await new Promise((resolve) => setTimeout(resolve, 6000)) // loaded again meanwhile
  expect(await page.locator('#graphs canvas').count()).toBe(4)
  expect(bytes).toBeGreaterThan(10_000)
  expect(bytes).toBeLessThan(100_000)
  expect(faults).toEqual([])
  const anyone = await fetch(`${sidecar.url}/_page/series`)
  expect(anyone.status).toBe(401)
})

test('a canary is sent by a click', async () => {
  needs('browser')
  const { sidecar } = await startShop()
  const { page } = await signIn(sidecar, admin())
  await page.getByRole('button', { name: 'Send a canary' }).click()
  expect(await textOf(page)).toMatch(/It has arrived: \d+ ms, by /)
})

test('many documents are discarded while a bar shows how far that is, and it is stopped and undone', async () => {
  needs('browser')
  const proxy = await startFaultyProxy()
  const { sidecar, orders } = await startShop({ COUCHDB_URL: proxy.url })
  const error = { code: 'no_stock', reason: 'nothing is left', at: '2026-01-01T00:00:00.000Z' }
  const failed = { type: 'order', state: 'error', error, docstate: { state: 'error', failed_in: 'paid' } }
  const ids = Array.from({ length: 600 }, (_, n) => `many-${n}`)
  await orders.bulk(ids.map((_id) => JSON.stringify({ _id, ...failed })))
  const { page, faults } = await signIn(sidecar, admin(), `/documents?db=${orders.name}&code=no_stock`)
  const press = (name: string) => page.getByRole('button', { name, exact: true }).click()
  await eventually(async () => {
    await page.reload()
    expect(await textOf(page)).toContain('The first 100 of 603 documents.')
  })
  let writes = 0
  proxy.plan(({ path }) => (path.startsWith(`/${orders.name}/_bulk_docs`) && ++writes > 1 ? silence : undefined))
  await press('Discard all that the filter means')
  expect(await textOf(page)).toContain('603 documents: ')
  await press('Yes, discard')
  const bar = page.getByRole('progressbar', { name: 'How far it is' })
  await eventually(async () => expect(await bar.getAttribute('value')).toBe('500'))
  expect(await accessibilityOf(page)).toEqual([])
  expect(await page.getByRole('button', { name: 'Undo' }).count(), 'while it runs').toBe(0)
  const overview = await page.context().newPage()
  await overview.goto(sidecar.url)
  await overview.getByRole('link', { name: /^Discard: 500 of 603 documents/ }).click()
  await overview.close()
  await press('Stop')
  await eventually(async () =>
    expect(await textOf(page)).toMatch(/^Stopped[^]*500 discarded\.[^]*goes on with the rest/),
  )
  proxy.plan(() => undefined)
  await press('Undo')
  await press('Yes, undo it')
  await eventually(async () => expect(await textOf(page)).toMatch(/^Done[^]*500 stand as before\./))
  const docs = await orders.getMany(ids)
  expect(docs.every(({ docstate }) => !Object.hasOwn(Object(docstate) as object, 'discarded'))).toBe(true)
  await page.goto(`${sidecar.url}/batch?id=unknown`)
  expect(await textOf(page)).toContain('This worker knows nothing of it')
  expect(faults).toEqual([])
})

test('a deploy that is not complete is told, with what it does', async () => {
  needs('browser')
  const { sidecar, orders } = await startShop()
  const { page } = await signIn(sidecar, admin(), '/deploys')
  const says = (text: RegExp) =>
    eventually(async () => {
      await page.reload()
      expect(await textOf(page)).toMatch(text)
    })
  await says(/No deploy is under way\./)
  const at = '2026-01-01T00:00:00.000Z'
  const record = {
    ...{ ddocs: ['_design/shop'], previous: {}, known: {}, holder: { run: 'r', name: 'ann@laptop', since: at } },
    log: [{ step: 'staging', ddoc: '_design/shop', at }] as const,
  }
  const rev = await orders.put(recordDoc(record, undefined))
  await says(/In 1 of \d+ databases a deploy is not complete\./)
  expect(await page.getByRole('row', { name: orders.name }).innerText()).toMatch(
    /ann@laptop[^]*builds the index of _design\/shop/,
  )
  expect(await accessibilityOf(page)).toEqual([])
  const { holder: _, ...left } = record
  const last = await orders.put(recordDoc(left, rev))
  await says(/it has broken off/)
  await orders.remove('_design/sidecar:deploy', last)
  await says(/No deploy is under way\./)
})
