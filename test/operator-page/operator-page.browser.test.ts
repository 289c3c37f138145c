/** The operator page in a browser: the operator sees stuck documents and retries them with a click. */
import { expect, test } from 'vitest'
import { needs } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { startFaultyProxy } from '../support/faulty-proxy.ts'
import { accessibilityOf, admin, makeUser, signIn, startShop, textOf } from './shop.ts'

test('the overview shows stuck documents with their reason, and a click retries them', async () => {
  needs('browser')
  const { sidecar, orders } = await startShop()
  const { page, faults } = await signIn(sidecar, admin())
  await eventually(async () => expect(await textOf(page)).toContain('3 documents are stuck.'))
  expect(await textOf(page)).toContain('no_stock: nothing is left of <b>pens</b>')
  await page.getByRole('link', { name: '3', exact: true }).click()
  await page.getByRole('link', { name: 'o1' }).click()
  expect(await textOf(page)).toContain('no_stock')
  await page.getByRole('link', { name: 'Overview' }).click()

  await orders.put({ ...(await orders.get('o0')), broken: false })
  await orders.put({ ...(await orders.get('o1')), broken: false })
  await page.getByRole('button', { name: 'Retry all' }).click()
  expect(await textOf(page)).toContain('3 documents: ')
  expect((await orders.get('o0')).state, 'nothing changes before the confirmation').toBe('error')
  await page.getByRole('button', { name: 'Yes, retry' }).click()
  expect(await textOf(page)).toContain('3 retried.')
  await eventually(async () => {
    const docs = await orders.getMany(['o0', 'o1', 'o2'])
    expect(docs.map(({ state }) => state)).toEqual(['shipped', 'shipped', 'error'])
  })
  await page.getByRole('link', { name: 'to the overview' }).click()
  await eventually(async () => expect(await textOf(page)).toContain('1 document is stuck.')) // without a reload
  await eventually(async () => expect(await textOf(page)).toContain('failed for good: no_stock')) // as events occur
  expect(faults).toEqual([])
})

test('a document page hides personal data until a click', async () => {
  needs('browser')
  const { sidecar, orders } = await startShop()
  const { page } = await signIn(sidecar, admin(), `/document?db=${orders.name}&id=fine`)
  expect(await textOf(page)).not.toContain('ann@example.com')
  await page.getByRole('button', { name: 'Show the fields' }).click()
  expect(await textOf(page)).toContain('ann@example.com')
  await eventually(() =>
    expect(sidecar.log).toContainEqual(
      expect.objectContaining({ msg: 'the fields of a document were shown', doc: 'fine', by: admin().name }),
    ),
  )
})

test('a click pauses and resumes a handler, and the record names the operator', async () => {
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

test('a form changes the attempt limit of a handler and rejects text that is no number', async () => {
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
  await page.goto(`${sidecar.url}/act?verb=set&handler=order/pain&concurrency=1&limit=default`)
  await page.getByRole('button', { name: 'Yes, set' }).click()
  expect(await textOf(page)).toMatch(/Nothing was done[^]*got order\/pain \(did you mean order\/paid/)
  await page.goto(`${sidecar.url}/handlers`)
  for (const label of ['Concurrency', 'Limit']) await row().getByLabel(label).fill('default')
  await row().getByRole('button', { name: 'Set' }).click()
  await page.getByRole('button', { name: 'Yes, set' }).click()
  expect((await control.admin.get('config:handlers')).handlers).toEqual({})
})

test('the page reports that CouchDB is down and recovers by itself', async () => {
  needs('browser')
  const proxy = await startFaultyProxy()
  const { sidecar } = await startShop({ COUCHDB_URL: proxy.url })
  const { page } = await signIn(sidecar, admin())
  await eventually(async () => expect(await textOf(page)).toContain('3 documents are stuck.'))
  await proxy.down()
  await eventually(async () => expect(await textOf(page)).toContain('CouchDB does not answer'))
  const later = await page.goto(`${sidecar.url}/documents`)
  expect([later?.status(), await textOf(page)]).toEqual([503, expect.stringContaining('Nothing is lost')])
  await proxy.up()
  await eventually(async () => expect(await textOf(page)).toContain('Status'))
})

test('the page shows its age while reloads fail, until a reload succeeds', async () => {
  needs('browser')
  const { sidecar } = await startShop()
  const { page } = await signIn(sidecar, admin())
  await eventually(async () => expect(await textOf(page)).toContain('3 documents are stuck.'))
  await page.clock.install()
  await page.reload()
  const says = async (text: RegExp) => {
    await page.clock.fastForward(5000)
    await eventually(async () => expect(await textOf(page)).toMatch(text))
  }
  await page.route('**/*', (route) => route.abort())
  await says(/This page is from .*: the sidecar does not answer\.[^]*3 documents are stuck\./)
  await page.unrouteAll()
  const broken = { status: 500, contentType: 'text/html', body: '<main>broken</main>' }
  await page.route('**/*', (route) => route.fulfill(broken))
  await says(/This page is from .*: the sidecar answers 500\.[^]*3 documents are stuck\./)
  await page.unrouteAll()
  await says(/^(?![^]*This page is from)[^]*3 documents are stuck\./)
  await page.context().clearCookies()
  await says(/This page is from .*: you are signed out/)
})

test('a viewer can read but not act, and other users see nothing', async () => {
  needs('browser')
  const { sidecar, orders } = await startShop()
  const viewer = await signIn(sidecar, await makeUser(['sidecar-viewer']))
  await eventually(async () => expect(await textOf(viewer.page)).toContain('3 documents are stuck.'))
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

test('every page passes the accessibility rules, also with texts that could break them', async () => {
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
    '/deploys',
    '/mails',
    '/batch?id=unknown',
    '/person',
    '/person?address=unknown@example.com',
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
    await page.setViewportSize({ width: 320, height: 400 }) // equals 1280 pixels
    expect(
      await page.evaluate('document.documentElement.scrollWidth'),
      `${path} is read without scrolling sideways`,
    ).toBe(320)
    await page.setViewportSize({ width: 1280, height: 800 })
  }
  expect(faults.filter((fault) => !/404|400/.test(fault))).toEqual([])
})
