/** The operator pages apart from the overview: lists, machines, users, indexes, graphs, the canary. */
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { needs } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { silence, startFaultyProxy } from '../support/faulty-proxy.ts'
import { recordDoc } from '../../sidecar/deploy/staging/record.ts'
import { startTestSmtp } from '../support/smtp.ts'
import { accessibilityOf, admin, shop, signIn, startShop, textOf } from './shop.ts'

test('a long list has pages, and an id prefix finds a document', async () => {
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
    const more = page.getByRole('link', { name: 'Next page' })
    if ((await more.count()) === 0) break
    expect(pages).toBeLessThan(4)
    await more.click()
  }
  expect(docs.every(({ _id }) => seen.has(_id))).toBe(true)
  await page.getByLabel('Id or prefix').fill('rest-01')
  await page.getByRole('button', { name: 'Search' }).click()
  expect(await textOf(page)).toContain('10 documents.')
  await page.getByRole('link', { name: 'rest-017' }).click()
  expect(await textOf(page)).toContain('rest-017 in ')
  for (const wrong of ['after=nowhere', 'older=long', 'older=2h&status=ready', 'status=lost'])
    expect((await page.goto(`${sidecar.url}/documents?${wrong}`))?.status(), wrong).toBe(400)
})

test('a list filters documents by failure time and retries them', async () => {
  needs('browser')
  const { sidecar, orders } = await startShop()
  const { page } = await signIn(sidecar, admin(), '/documents')
  await eventually(async () => {
    await page.reload()
    expect(await textOf(page)).toContain('3 documents.')
  })
  await page.getByLabel('Older than (30m, 2h)').fill('1d')
  await page.getByRole('button', { name: 'Show' }).click()
  expect(await textOf(page)).toContain('No document matches.')
  const old = await orders.get('o1')
  const error = { ...(old.error as object), at: '2020-01-01T00:00:00.000Z' }
  await orders.put({ ...old, error, broken: false })
  await eventually(async () => {
    await page.reload()
    expect(await page.locator('tbody th').allInnerTexts()).toEqual(['o1'])
  })
  await page.getByRole('button', { name: 'Retry all that match' }).click()
  expect(await textOf(page)).toContain('Up to 3 documents: older 1d.')
  await page.getByRole('button', { name: 'Yes, retry' }).click()
  expect(await textOf(page)).toContain('1 retried.')
  await eventually(async () => {
    const docs = await orders.getMany(['o0', 'o1', 'o2'])
    expect(docs.map(({ state }) => state)).toEqual(['error', 'shipped', 'error'])
  })
})

test('conflicting revisions stand side by side, and their values are hidden until a click', async () => {
  needs('browser')
  const { sidecar, orders } = await startShop()
  const order = { _id: 'twice', type: 'note', state: 'kept', same: 'a secret' } // no handler resolves its conflicts
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
  await page.getByRole('button', { name: 'Show the fields' }).click()
  const shown = await table.innerText()
  for (const text of [`1-${'a'.repeat(32)}`, 'ann@example.com', 'bob@example.com']) expect(shown).toContain(text)
})

test('a machine drawing shows the document count of each state, and a box links to the documents', async () => {
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
  await eventually(async () => {
    await page.reload() // another worker may have counted earlier
    expect(await textOf(page)).toContain('waits')
  })
})

test('a document page shows the stack of the last failure', async () => {
  needs('browser')
  const { sidecar, orders } = await startShop()
  await orders.put({ _id: 'hurt', type: 'order', state: 'paid', hurt: true })
  const failed = { docstate: { failure: { code: 'TypeError' } } }
  await eventually(async () => expect(await orders.get('hurt')).toMatchObject(failed))
  const { page } = await signIn(sidecar, admin(), `/document?db=${orders.name}&id=hurt`)
  await eventually(async () => expect(await textOf(page)).toMatch(/TypeError: no such pen\s+at .*handlers/))
  expect(await textOf(page)).toContain('Of this document')
  expect(await accessibilityOf(page)).toEqual([])
  expect(await orders.get('hurt'), 'stacks stay on the server').not.toHaveProperty(['docstate', 'failure', 'stack'])
  await page.goto(`${sidecar.url}/document?db=${orders.name}&id=o1`)
  expect(await textOf(page)).toContain('No running worker has a stack of this failure.')
})

test('an address finds a user’s devices; mailing and revoking them records the operator', async () => {
  needs('browser')
  const { sidecar, control } = await startShop()
  const owner = `${randomBytes(4).toString('hex')}@example.com`
  const device = { type: 'device', owner, device_code: '1234', name: 'phone' }
  await control.admin.put({ ...device, _id: 'waits', state: 'confirming' })
  await control.admin.put({ ...device, _id: 'other', state: 'confirming', owner: 'bob@example.com' })
  const { page, faults } = await signIn(sidecar, admin(), '/person')
  await eventually(async () => expect(await page.getByRole('row', { name: 'Devices confirming' }).count()).toBe(1))
  expect(await textOf(page)).not.toContain('@example.com')
  await page.getByLabel('Email address of a user').fill(owner.toUpperCase())
  await page.getByRole('button', { name: 'Show' }).click()
  expect(await textOf(page)).toContain('No account yet')
  expect(await page.getByRole('row', { name: 'phone' }).count()).toBe(1)
  await page.getByRole('button', { name: 'Send the mail again' }).click()
  await page.getByRole('button', { name: 'Yes, send it' }).click()
  expect(await textOf(page)).toContain('1 mail requested.')
  await eventually(async () => {
    const doc = await control.admin.get<{ state: string; confirmation?: { codes: unknown[] } }>('waits')
    expect([doc.state, doc.confirmation?.codes.length]).toEqual(['confirming', 1])
  })
  await page.getByRole('link', { name: 'Go back' }).click()
  await page.getByRole('button', { name: 'Revoke' }).click()
  await page.getByRole('button', { name: 'Yes, revoke' }).click()
  await eventually(async () => expect((await control.admin.get('waits')).state).toBe('revoked'))
  await eventually(() =>
    expect(sidecar.log).toContainEqual(
      expect.objectContaining({ msg: 'an operator has acted', verb: 'revoke', id: 'waits', by: admin().name }),
    ),
  )
  const own = sidecar.log.filter(({ msg }) => msg !== 'mail caught')
  expect(JSON.stringify(own), 'no log line contains the address').not.toContain(owner)
  expect((await control.admin.get('other')).state).toBe('confirming')
  expect(faults).toEqual([])
})

test('the index page lists indexes, also while all are up to date', async () => {
  needs('browser')
  const { sidecar } = await startShop()
  const { page } = await signIn(sidecar, admin(), '/indexes')
  await eventually(async () => {
    await page.reload()
    expect(await textOf(page)).toMatch(/\d+ index(es are| is) up to date/)
  })
})

test('graphs show recent activity, and all resources of the page are less than 100 KB', async () => {
  needs('browser')
  const { sidecar } = await startShop()
  const { page, faults } = await signIn(sidecar, admin(), '/handlers')
  await eventually(async () => expect(await textOf(page)).toContain('order/paid')) // the page is loaded
  let bytes = 0
  page.on(
    'response',
    (response) =>
      void response.body().then(
        ({ length }) => (bytes += length),
        () => undefined, // the page was closed
      ),
  )
  await page.clock.install()
  await page.goto(sidecar.url)
  await eventually(async () => expect(await page.locator('#graphs canvas').count()).toBe(5))
  expect(
    await page.getByRole('img', { name: /^Handled and failed, per second, last hour; at last: done/ }).count(),
  ).toBe(1)
  await page.getByRole('button', { name: 'Last day' }).click()
  expect(await page.getByRole('img', { name: /last day/ }).count()).toBe(5)
  const again = page.waitForResponse(/\/$/)
  await page.clock.fastForward(5000)
  await again
  await eventually(async () => expect(await page.locator('#graphs canvas').count()).toBe(5))
  expect(await page.locator('#graphs canvas').count()).toBe(5)
  expect(bytes).toBeGreaterThan(10_000)
  expect(bytes).toBeLessThan(100_000)
  expect(faults).toEqual([])
  const anyone = await fetch(`${sidecar.url}/_page/series`)
  expect(anyone.status).toBe(401)
})

test('the mail page lists sent and refused mails, and refused mails can be sent again', async () => {
  needs('browser')
  const smtp = await startTestSmtp()
  const { sidecar, orders } = await startShop({ SMTP_URL: smtp.url })
  const { page, faults } = await signIn(sidecar, admin(), '/mails')
  expect(await textOf(page)).toContain(`Mails go to the mail server ${new URL(smtp.url).host}, from sidecar@localhost.`)
  const mail = (name: string) => orders.put({ _id: name, type: 'order', state: 'paid', mail: `${name}@example.com` })
  await mail('ann')
  await eventually(async () => expect((await orders.get('ann')).state).toBe('shipped'))
  smtp.behave({ kind: 'refuse-recipient', code: 550 })
  await mail('bob')
  await eventually(async () => {
    await page.reload()
    const text = await textOf(page)
    expect(text).toMatch(/ann in .*\s+a…@example\.com\s+sent/)
    expect(text).toMatch(/bob in .*\s+b…@example\.com\s+failed mail_refused: the mail server said: .*550/)
    expect(text, 'addresses are masked').not.toMatch(/(ann|bob)@/)
    expect(await page.getByRole('region', { name: 'Documents whose mail was not sent' }).innerText()).toContain(
      'mail_refused',
    )
  })
  expect(await accessibilityOf(page)).toEqual([])
  smtp.behave({ kind: 'accept' })
  await page.getByRole('button', { name: 'Retry all' }).click()
  await page.getByRole('button', { name: 'Yes, retry' }).click()
  await eventually(async () => expect((await orders.get('bob')).state).toBe('shipped'))
  expect(smtp.accepted.map(({ envelope: { to } }) => to)).toEqual([['ann@example.com'], ['bob@example.com']])
  expect(faults).toEqual([])
})

test('a click sends a canary', async () => {
  needs('browser')
  const { sidecar } = await startShop()
  const { page } = await signIn(sidecar, admin())
  await page.getByRole('button', { name: 'Send a canary' }).click()
  expect(await textOf(page)).toMatch(/The canary arrived after \d+ ms, handled by /)
})

test('a bar shows the progress of discarding many documents, and the command can be stopped and undone', async () => {
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
  await press('Discard all that match')
  expect(await textOf(page)).toContain('603 documents: ')
  await press('Yes, discard')
  const bar = page.getByRole('progressbar', { name: 'Progress' })
  await eventually(async () => expect(await bar.getAttribute('value')).toBe('500'))
  // The silent request ends by itself after 30 s, and several workers need most of that time.
  if (shop.workers === 1) {
    expect(await accessibilityOf(page)).toEqual([])
    expect(await page.getByRole('button', { name: 'Undo' }).count(), 'no undo while the batch runs').toBe(0)
    const overview = await page.context().newPage()
    await overview.goto(sidecar.url)
    await overview.getByRole('link', { name: /^Discard: 500 of 603 documents/ }).click()
    await overview.close()
  }
  await press('Stop')
  const says = (text: RegExp) => eventually(async () => expect(await textOf(page)).toMatch(text))
  await says(/^Stopped[^]*500 discarded\.[^]*again for the rest/)
  proxy.plan(() => undefined)
  await press('Undo')
  await press('Yes, undo it')
  await says(/^Done[^]*500 restored\./)
  const docs = await orders.getMany(ids)
  expect(docs.every(({ docstate }) => !Object.hasOwn(Object(docstate) as object, 'discarded'))).toBe(true)
  await page.goto(`${sidecar.url}/batch?id=unknown`)
  expect(await textOf(page)).toContain('If another worker runs this order')
  expect(faults).toEqual([])
})

test('the page shows an incomplete deploy and its effects', async () => {
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
  await says(/A deploy is not complete in 1 of \d+ databases\./)
  expect(await page.getByRole('row', { name: orders.name }).innerText()).toMatch(
    /ann@laptop[^]*building the index of _design\/shop/,
  )
  expect(await accessibilityOf(page)).toEqual([])
  const { holder: _, ...left } = record
  const last = await orders.put(recordDoc(left, rev))
  await says(/its process has ended/)
  await orders.remove('_design/sidecar:deploy', last)
  await says(/No deploy is under way\./)
})
