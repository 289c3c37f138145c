/** The operator's page in a browser: what is stuck is seen, and mended by a click. */
import { expect, test } from 'vitest'
import { needs } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { startFaultyProxy } from '../support/faulty-proxy.ts'
import { accessibilityOf, admin, makeUser, signIn, startShop, textOf } from './shop.ts'

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
  await page.goto(`${sidecar.url}/act?verb=set&handler=order/pain&concurrency=1&limit=default`)
  await page.getByRole('button', { name: 'Yes, set' }).click()
  expect(await textOf(page)).toMatch(/Nothing was done[^]*got order\/pain \(did you mean order\/paid/)
  await page.goto(`${sidecar.url}/handlers`)
  for (const label of ['Concurrency', 'Limit']) await row().getByLabel(label).fill('default')
  await row().getByRole('button', { name: 'Set' }).click()
  await page.getByRole('button', { name: 'Yes, set' }).click()
  expect((await control.admin.get('config:handlers')).handlers).toEqual({})
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
    '/deploys',
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
  }
  expect(faults.filter((fault) => !/404|400/.test(fault))).toEqual([])
})
