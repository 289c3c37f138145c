import { existsSync } from 'node:fs'
import type { Browser } from 'playwright-core'
import { onTestFinished } from 'vitest'
import { PATIENCE_MS } from './eventually.ts'

/** The paths of Debian's packages. The first is the same browser without windows, at less than half the time. */
const PLACES = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium']

/** The path of Chromium, if it is installed: `CHROMIUM_BIN`, or one of `PLACES`. */
export const findChromium = (): string | undefined =>
  [process.env.CHROMIUM_BIN ?? PLACES].flat().find((binary) => existsSync(binary))

let shared: Promise<Browser> | undefined

/** The browser that all tests share, one at a time. */
export const sharedBrowser = (): Promise<Browser> => (shared ??= launch())

export const stopSharedBrowser = async (): Promise<void> => (await sharedBrowser()).close()

async function launch(): Promise<Browser> {
  const executablePath = findChromium()
  if (executablePath === undefined) throw new Error("no Chromium: ask needs('browser') first")
  const { chromium } = await import('playwright-core')
  const args = ['--no-sandbox', '--disable-background-networking']
  const browser = await chromium.launch({ executablePath, args })
  browser.on('context', (context) => context.setDefaultTimeout(PATIENCE_MS))
  return browser
}

/** The shared browser, without a window. Its contexts close at the end of the test. Call `needs('browser')` first. */
export async function openBrowser(): Promise<Browser> {
  const browser = await sharedBrowser()
  onTestFinished(async () => void (await Promise.all(browser.contexts().map((context) => context.close()))))
  return browser
}
