/** Three workers, and a browser that opens pages of each of them. */
import { expect, test } from 'vitest'
import { needs } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { startSidecar } from '../acceptance/start.ts'
import { admin, signIn, startShop, textOf } from './shop.ts'

const BROKEN = { type: 'order', state: 'paid', broken: true }

test('the pages of each worker show events, totals and pauses of all three, and undo a batch', async () => {
  needs('browser')
  const { sidecar, orders, settings } = await startShop({ SIDECAR_NAME: 'a' })
  const others = await Promise.all(['b', 'c'].map((name) => startSidecar({ ...settings, SIDECAR_NAME: name })))
  const { page } = await signIn(sidecar, admin())
  await eventually(async () => expect(await textOf(page)).toContain('Of 3 workers together'))
  await orders.bulk(Array.from({ length: 30 }, (_, n) => JSON.stringify({ ...BROKEN, _id: `more-${n}` })))
  await eventually(async () => {
    const text = await textOf(page)
    expect(text).toContain('33 documents are stuck.')
    for (const name of ['in b', 'in c']) expect(text).toContain(name)
  })
  const workers = page.getByRole('region', { name: 'Workers' })
  for (const name of ['a', 'b', 'c'])
    expect(await workers.getByRole('rowheader', { name, exact: true }).count()).toBe(1)
  await page.goto(`${sidecar.url}/handlers`)
  expect(await page.getByRole('row', { name: 'order/paid' }).innerText()).toMatch(/^order\/paid\s+3\s/)

  await page.goto(`${others[0]!.url}/act?verb=discard&db=${orders.name}`)
  await page.getByRole('button', { name: 'Yes, discard' }).click()
  await eventually(async () => expect(await textOf(page)).toContain('33 discarded.'))
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByRole('button', { name: 'Yes, undo it' }).click()
  await eventually(async () => expect(await textOf(page)).toContain('33 restored.'))

  await page.goto(`${sidecar.url}/handlers`)
  await page.getByRole('row', { name: 'order/paid' }).getByRole('button', { name: 'Pause' }).click()
  await page.getByRole('button', { name: 'Yes, pause' }).click()
  await page.goto(`${others[1]!.url}/handlers`)
  await eventually(async () =>
    expect(await page.getByRole('row', { name: 'order/paid' }).innerText()).toContain('paused'),
  )
})
