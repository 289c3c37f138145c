import { existsSync } from 'node:fs'
import type { Browser } from 'playwright-core'
import { onTestFinished } from 'vitest'

/** Where Debian puts it. The first is the same browser without its windows, which costs less than half the time. */
const PLACES = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium']

/** Where Chromium is, if it is here: `CHROMIUM_BIN`, or one of `PLACES`. */
export const findChromium = (): string | undefined =>
  [process.env.CHROMIUM_BIN ?? PLACES].flat().find((binary) => existsSync(binary))

let shared: Promise<Browser> | undefined

/** The one that all tests have in turn. */
export const sharedBrowser = (): Promise<Browser> => (shared ??= launch())

export const stopSharedBrowser = async (): Promise<void> => (await sharedBrowser()).close()

async function launch(): Promise<Browser> {
  const executablePath = findChromium()
  if (executablePath === undefined) throw new Error("no Chromium: ask needs('browser') first")
  const { chromium } = await import('playwright-core')
  const args = ['--no-sandbox', '--disable-background-networking']
  return chromium.launch({ executablePath, args })
}

/** The shared browser, which has no window, and whose contexts are closed at the end of the test; ask `needs('browser')` first. */
export async function openBrowser(): Promise<Browser> {
  const browser = await sharedBrowser()
  onTestFinished(async () => void (await Promise.all(browser.contexts().map((context) => context.close()))))
  return browser
}
