import { pino } from 'pino'
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { createHttp } from '../../sidecar/http/app.ts'
import { confirmPage } from '../../sidecar/devices/confirm-page.ts'
import { serveApp } from '../http/serve-app.ts'
import { openBrowser } from '../support/browser.ts'
import { needs } from '../support/couchdb.ts'
import { memoryConfirmations } from './memory-confirmations.ts'

const phone = { viewport: { width: 360, height: 640 }, hasTouch: true, isMobile: true, javaScriptEnabled: false }

async function openOnPhone(colorScheme: 'light' | 'dark' = 'light') {
  needs('browser')
  const confirmations = memoryConfirmations({ deviceId: 'd 1', confirmCode: 'c0de', deviceCode: '12ab' })
  const log = pino({ level: 'silent' })
  const app = createHttp({ routes: [confirmPage({ confirmations, log })], log })
  const listening = await serveApp(app)
  const browser = await openBrowser()
  const page = await (await browser.newContext({ ...phone, colorScheme })).newPage()
  const complaints: string[] = []
  page.on('console', (message) => complaints.push(message.text()))
  page.on('pageerror', (error) => complaints.push(error.message))
  await page.goto(`${listening.url}/confirm/d%201/c0de`)
  return { page, confirmations, complaints }
}

/** Resolves when the page with this title is shown. */
const see = (page: Page, title: string) => page.getByRole('heading', { name: title }).waitFor()

describe('the confirm page in a phone’s browser, without JavaScript', () => {
  it('a user types the code into the focused field, and sees that the device is confirmed', async () => {
    const { page, confirmations, complaints } = await openOnPhone()
    confirmations.credentials = { user: 'owner-d1', password: 'correct-horse-battery-staple' }
    await page.locator('input:focus').waitFor()
    await page.keyboard.type('12ab')
    await page.keyboard.press('Enter')
    await see(page, 'Your device is confirmed')
    expect(await page.getByText('correct-horse-battery-staple').isVisible()).toBe(true)
    expect(confirmations.clicks).toEqual([{ deviceId: 'd 1', confirmCode: 'c0de', deviceCode: '12ab' }])
    expect(complaints).toEqual([])
  })

  it('a user who mistyped the code can type it again', async () => {
    const { page, complaints } = await openOnPhone()
    await page.getByLabel('Code on the device').fill('12aa')
    await page.getByRole('button', { name: 'Confirm this device' }).tap()
    await see(page, 'That did not match')
    await page.getByLabel('Code on the device').fill('12ab')
    await page.getByRole('button', { name: 'Confirm this device' }).tap()
    await see(page, 'Your device is confirmed')
    // A browser logs this for any answer of 403.
    expect(complaints.filter((text) => !text.includes('status of 403'))).toEqual([])
  })

  it('a user who opens the page too early can try again', async () => {
    const { page, confirmations, complaints } = await openOnPhone()
    confirmations.next = { kind: 'pending' }
    await page.getByLabel('Code on the device').fill('12ab')
    await page.getByRole('button').tap()
    await see(page, 'One moment')
    await page.getByRole('button', { name: 'Look again' }).tap()
    await see(page, 'Your device is confirmed')
    expect(complaints).toEqual([])
  })

  it.each([
    ['light', 'rgb(244, 241, 238)'],
    ['dark', 'rgb(25, 23, 21)'],
  ] as const)(
    'the %s page fits the screen, has its style, and has targets large enough for a thumb',
    async (scheme, ground) => {
      const { page } = await openOnPhone(scheme)
      expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe(ground)
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360)
      for (const target of [page.getByRole('textbox'), page.getByRole('button')]) {
        expect((await target.boundingBox())?.height).toBeGreaterThanOrEqual(48)
      }
    },
  )
})
