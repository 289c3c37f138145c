import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { needs, uniqueName } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { followMail, shareBrowserStage, type BrowserStage } from './browser-stage.ts'

const openStage = shareBrowserStage()

async function openExample({ browser, site }: BrowserStage, viewport: { width: number; height: number }) {
  const page = await (await browser.newContext({ viewport })).newPage()
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
  page.on('dialog', (dialog) => void dialog.accept())
  await page.goto(`${site.url}/example/`)
  return { page, complaints }
}

async function register(stage: BrowserStage, page: Page, owner: string, name: string): Promise<void> {
  await page.getByLabel('Your mail address').fill(owner)
  await page.getByLabel('What this device is called').fill(name)
  await page.getByRole('button', { name: 'Register this device' }).click()
  await page.getByRole('heading', { name: 'Confirm this device' }).waitFor()
  await followMail(stage, owner, () => page.getByLabel('Code of this device').innerText())
  await page.getByRole('heading', { name: 'Confirm this device' }).waitFor({ state: 'hidden' })
}

const see = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor()

/** The sync state of the open notebook. */
const seeState = (page: Page, text: string) => page.locator('.pane .sync', { hasText: text }).waitFor()

test('the example opens without a network, and adds, changes and deletes notes offline', async () => {
  needs('browser')
  needs('pbkdf2 other than sha1')
  const stage = await openStage()
  const { page } = await openExample(stage, { width: 360, height: 740 })
  await page.getByLabel('Your mail address').fill(`${uniqueName('eve')}@example.com`)
  await page.getByLabel('What this device is called').fill('tablet')
  await page.getByRole('button', { name: 'Register this device' }).click()
  await page.getByText('New notebook').click()
  await page.getByLabel('Name', { exact: true }).fill('Garden')
  await page.getByRole('button', { name: 'Make it' }).click()
  const state = await page.locator('.pane .sync').innerText()
  expect(state, 'a new notebook is not shown as a failure').not.toContain('not synced')
  await page.evaluate(async () => void (await navigator.serviceWorker.ready))
  await page.context().setOffline(true)
  await page.reload()
  await page.getByLabel('Note', { exact: true }).fill('Water the beans')
  await page.getByRole('button', { name: 'Add' }).click()
  await see(page, 'Water the beans')
  await page.getByRole('button', { name: 'Edit' }).click()
  await page.getByLabel('Change the note').fill('Water the beans twice')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await see(page, 'Water the beans twice')
  await page.reload()
  await see(page, 'Water the beans twice')
  await page.getByRole('button', { name: 'Delete' }).click()
  await page.getByText('Water the beans twice').waitFor({ state: 'detached' })
})

test('users of the example register, share a notebook, write, pause, and lock out a device', async () => {
  needs('browser')
  needs('pbkdf2 other than sha1')
  const stage = await openStage()
  const [ann, bob] = [`${uniqueName('ann')}@example.com`, `${uniqueName('bob')}@example.com`]
  const phone = await openExample(stage, { width: 360, height: 740 })
  await register(stage, phone.page, ann, 'phone')
  await phone.page.getByText('New notebook').click()
  await phone.page.getByLabel('Name', { exact: true }).fill('Holidays')
  await phone.page.getByLabel('Share with').fill(bob)
  await phone.page.getByRole('button', { name: 'Make it' }).click()
  await phone.page.getByLabel('Note', { exact: true }).fill('Pack the tent')
  await phone.page.getByRole('button', { name: 'Add' }).click()
  await see(phone.page, 'Pack the tent')
  await seeState(phone.page, 'in sync')

  const his = await openExample(stage, { width: 1280, height: 800 })
  await register(stage, his.page, bob, 'desktop')
  await his.page.getByRole('link', { name: /Holidays/ }).click()
  await his.page.getByRole('button', { name: 'Accept' }).click()
  await see(his.page, 'Pack the tent')
  await his.page.getByLabel('Note', { exact: true }).fill('And the stove')
  await his.page.keyboard.press('Enter')
  await see(phone.page, 'And the stove')

  await phone.page.reload()
  await see(phone.page, 'And the stove')
  await phone.page.getByRole('button', { name: 'Pause', exact: true }).click()
  await seeState(phone.page, 'paused')
  await phone.page.getByRole('button', { name: 'Go on' }).click()
  await seeState(phone.page, 'in sync')

  await phone.page.getByRole('link', { name: /All notebooks/ }).click()
  await phone.page.getByRole('button', { name: 'Lock out' }).click()
  await phone.page.getByRole('heading', { name: 'This device is locked out' }).waitFor()
  for (const { page, complaints } of [phone, his]) {
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true)
    // The browser logs each refused request: before the role is assigned, and after it is removed.
    await eventually(() => expect(complaints.filter((text) => !/status of 40[134]/.test(text))).toEqual([]))
  }
})
