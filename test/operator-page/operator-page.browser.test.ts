/** The operator's page in a browser: what is stuck is seen, and mended by a click. */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import { expect, onTestFinished, test } from 'vitest'
import { startWith, writeModule } from '../acceptance/own-handlers.ts'
import type { Settings, Sidecar } from '../acceptance/sidecar.ts'
import { openBrowser } from '../support/browser.ts'
import { createTestCouch, couchUrl, needs } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { startFaultyProxy } from '../support/faulty-proxy.ts'

/** Orders that end in error, or are parked by hand, and one that is well. */
async function startShop(settings: Settings = {}) {
  const module = await writeModule(`
    import { defineHandlers, Reject } from 'couchdb-sidecar'
    export default defineHandlers((control) => {
      control.unsafe('order', 'paid', async (order) => {
        if (order.broken) throw new Reject('no_stock', 'nothing is left of <b>pens</b>')
        return { ...order, state: 'shipped' }
      })
    })`)
  const stage = await startWith(module, settings)
  const broken = Array.from({ length: 3 }, (_, n) => ({ _id: `o${n}`, type: 'order', state: 'paid', broken: true }))
  for (const order of [...broken, { _id: 'fine', type: 'order', state: 'paid', email: 'ann@example.com' }])
    await stage.orders.put(order)
  await eventually(async () => {
    const docs = await stage.orders.getMany(['o0', 'o1', 'o2', 'fine'])
    expect(docs.map(({ state }) => state)).toEqual(['error', 'error', 'error', 'shipped'])
  })
  return stage
}

async function makeUser(roles: readonly string[]) {
  const name = `user-${randomBytes(6).toString('hex')}`
  const users = createTestCouch().db('_users')
  const _id = `org.couchdb.user:${name}`
  const _rev = await users.put({ _id, type: 'user', name, roles, password: 'secret' })
  onTestFinished(() => users.remove(_id, _rev))
  return { name, password: 'secret' }
}

const admin = () => {
  const { username, password } = new URL(couchUrl())
  return { name: decodeURIComponent(username), password: decodeURIComponent(password) }
}

async function signIn({ url }: Sidecar, { name, password }: { name: string; password: string }, path = '/') {
  const browser = await openBrowser()
  const page = await (await browser.newContext()).newPage()
  const faults: string[] = []
  page.on('pageerror', (error) => faults.push(error.message))
  page.on('console', (message) => message.type() === 'error' && faults.push(message.text()))
  await page.goto(url + path)
  await page.getByLabel('Name').fill(name)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  return { page, faults }
}

const textOf = (page: Page) => page.locator('main').innerText()

test('what is stuck is said with its reason, and mended by a click', async () => {
  needs('browser')
  const { sidecar, orders } = await startShop()
  const { page, faults } = await signIn(sidecar, admin())
  await eventually(async () => expect(await textOf(page)).toContain('3 documents do not go on.'))
  expect(await textOf(page)).toContain('no_stock: nothing is left of <b>pens</b>')
  await page.getByRole('link', { name: '3', exact: true }).click()
  await page.getByRole('link', { name: 'o1' }).click()
  expect(await textOf(page)).toContain('no_stock')
  await page.getByRole('link', { name: 'Overview' }).click()

  await orders.put({ ...(await orders.get('o0')), broken: false })
  await orders.put({ ...(await orders.get('o1')), broken: false })
  await page.getByRole('button', { name: 'Retry all' }).click()
  expect(await textOf(page)).toContain('3 documents: ')
  expect((await orders.get('o0')).state, 'nothing is done before it was asked').toBe('error')
  await page.getByRole('button', { name: 'Yes, retry' }).click()
  expect(await textOf(page)).toContain('3 brought back.')
  await eventually(async () => {
    const docs = await orders.getMany(['o0', 'o1', 'o2'])
    expect(docs.map(({ state }) => state)).toEqual(['shipped', 'shipped', 'error'])
  })
  await page.getByRole('link', { name: 'to the overview' }).click()
  await eventually(async () => expect(await textOf(page)).toContain('1 document does not go on.')) // by itself
  await eventually(async () => expect(await textOf(page)).toContain('has failed for good: no_stock')) // as it happened
  expect(faults).toEqual([])
})

test('a document hides what may be a person’s until it is asked for', async () => {
  needs('browser')
  const { sidecar, orders } = await startShop()
  const { page } = await signIn(sidecar, admin(), `/document?db=${orders.name}&id=fine`)
  expect(await textOf(page)).not.toContain('ann@example.com')
  await page.getByRole('button', { name: 'Show them' }).click()
  expect(await textOf(page)).toContain('ann@example.com')
  expect(sidecar.log).toContainEqual(
    expect.objectContaining({ msg: 'the fields of a document were shown', doc: 'fine', by: admin().name }),
  )
})

test('a handler is paused and resumed, and it is written down who did it', async () => {
  needs('browser')
  const { sidecar, orders, control } = await startShop()
  const { page } = await signIn(sidecar, admin(), '/handlers')
  await page.getByRole('row', { name: 'order/paid' }).getByRole('button', { name: 'Pause' }).click()
  await page.getByRole('button', { name: 'Yes, pause' }).click()
  await eventually(async () => {
    const settings = await control.admin.get('config:handlers')
    expect(settings).toMatchObject({ handlers: { 'order/paid': { paused: true } }, by: admin().name })
  })
  await new Promise((resolve) => setTimeout(resolve, 1500))
  await orders.put({ _id: 'later', type: 'order', state: 'paid' })
  await page.getByRole('link', { name: 'Go back' }).click()
  await page.getByRole('row', { name: 'order/paid' }).getByRole('button', { name: 'Resume' }).click()
  expect((await orders.get('later')).state).toBe('paid')
  await page.getByRole('button', { name: 'Yes, resume' }).click()
  await eventually(async () => expect((await orders.get('later')).state).toBe('shipped'))
})

test('how many runs a handler has is changed, and what is no number is said', async () => {
  needs('browser')
  const { sidecar, control } = await startShop()
  const { page } = await signIn(sidecar, admin(), '/handlers')
  const row = () => page.getByRole('row', { name: 'order/paid' })
  await row().getByLabel('Concurrency').fill('4')
  await row().getByLabel('Limit').fill('600/1m')
  await row().getByRole('button', { name: 'Set' }).click()
  expect(await textOf(page)).toContain('concurrency 4, limit 600 in 1m')
  await page.getByRole('button', { name: 'Yes, set' }).click()
  const settings = await control.admin.get('config:handlers')
  expect(settings).toMatchObject({ handlers: { 'order/paid': { concurrency: 4, limit: { count: 600, per: '1m' } } } })
  await page.getByRole('link', { name: 'Go back' }).click()
  await row().getByLabel('Concurrency').fill('many')
  await row().getByRole('button', { name: 'Set' }).click()
  expect(await page.locator('body').innerText()).toContain(
    'expected a whole number of runs from 1, or default, got many',
  )
  await page.goto(`${sidecar.url}/handlers`)
  for (const label of ['Concurrency', 'Limit']) await row().getByLabel(label).fill('default')
  await row().getByRole('button', { name: 'Set' }).click()
  await page.getByRole('button', { name: 'Yes, set' }).click()
  expect((await control.admin.get('config:handlers')).handlers).toEqual({})
})

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
  expect(await textOf(page)).toContain('1 asked for.')
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
      expect(await textOf(page)).toMatch(/\d+ indexes/)
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

test('while CouchDB is away the page says so, and comes back by itself', async () => {
  needs('browser')
  const proxy = await startFaultyProxy()
  const { sidecar } = await startShop({ COUCHDB_URL: proxy.url })
  const { page } = await signIn(sidecar, admin())
  await eventually(async () => expect(await textOf(page)).toContain('3 documents do not go on.'))
  await proxy.down()
  await eventually(async () => expect(await textOf(page)).toContain('CouchDB does not answer'))
  const later = await page.goto(`${sidecar.url}/documents`)
  expect([later?.status(), await textOf(page)]).toEqual([503, expect.stringContaining('nothing is lost')])
  await proxy.up()
  await eventually(async () => expect(await textOf(page)).toContain('How it stands'), { within: 60_000 })
})

test('a canary is sent by a click', async () => {
  needs('browser')
  const { sidecar } = await startShop()
  const { page } = await signIn(sidecar, admin())
  await page.getByRole('button', { name: 'Send a canary' }).click()
  expect(await textOf(page)).toMatch(/It has arrived: \d+ ms, by /)
})

test('a viewer sees and cannot act, and others see nothing', async () => {
  needs('browser')
  const { sidecar, orders } = await startShop()
  const viewer = await signIn(sidecar, await makeUser(['sidecar-viewer']))
  await eventually(async () => expect(await textOf(viewer.page)).toContain('3 documents do not go on.'))
  expect(await viewer.page.getByRole('button', { name: 'Retry all' }).count()).toBe(0)
  const body = new URLSearchParams({ verb: 'retry', db: orders.name, id: 'o1' }).toString()
  const forced = await viewer.page.evaluate(
    (body) =>
      fetch('/act', { method: 'POST', body, headers: { 'content-type': 'application/x-www-form-urlencoded' } }).then(
        ({ status }) => status,
      ),
    body,
  )
  expect(forced).toBe(403)
  expect((await orders.get('o1')).state).toBe('error')
  const other = await signIn(sidecar, await makeUser(['reader']))
  expect(await other.page.locator('body').innerText()).toContain('neither a server admin')
  const wrong = await signIn(sidecar, { ...(await makeUser([])), password: 'guessed' })
  expect(await textOf(wrong.page)).toContain('Name or password is incorrect.')
})

test('no page breaks a rule of accessibility, with texts that would break it', async () => {
  needs('browser')
  const { sidecar, orders } = await startShop()
  const hostile = { type: '</td><script>document.title="broken"</script>', state: '\u202egnorw\u0007' }
  await orders.put({ _id: '<img src=x onerror=alert(1)>', ...hostile })
  const { page, faults } = await signIn(sidecar, admin())
  const stuck = new URLSearchParams({ db: orders.name }).toString()
  const paths = [
    '/',
    `/documents?${stuck}`,
    `/documents?${new URLSearchParams({ ...hostile, status: 'ready' }).toString()}`,
    `/document?${new URLSearchParams({ db: orders.name, id: '<img src=x onerror=alert(1)>' }).toString()}`,
    `/document?${stuck}&id=o1`,
    `/document?${stuck}&id=nowhere`,
    '/document?db=nowhere&id=x',
    '/handlers',
    '/machines',
    '/indexes',
    '/person',
    '/person?address=nobody@example.com',
    `/documents?${stuck}&id=o`,
    `/act?verb=discard&${stuck}`,
    '/sign-in',
  ]
  for (const path of paths) {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      await page.goto(sidecar.url + path)
      expect(await page.title(), path).toMatch(/couchdb-sidecar$/)
      const found = await accessibilityOf(page)
      expect(found, `${path} ${colorScheme}`).toEqual([])
    }
    expect(await textOf(page), path).not.toMatch(/[\u0007\u202e]/)
  }
  expect(faults.filter((fault) => !/404|400/.test(fault))).toEqual([])
})

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** What axe finds; it is run beside the page's own policy, which lets no such script in. */
async function accessibilityOf(page: Page): Promise<string[]> {
  const results = await page.evaluate<{ violations: { id: string; nodes: { html: string }[] }[] }>(
    `(() => { const module = undefined; ${AXE}; return axe.run(document) })()`,
  )
  return results.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`)
}
