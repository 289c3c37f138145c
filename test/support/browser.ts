import { existsSync } from 'node:fs'
import type { Browser } from 'playwright-core'
import { onTestFinished } from 'vitest'

/** Where Chromium is, if it is here: `CHROMIUM_BIN`, or where Debian puts it. */
export function findChromium(): string | undefined {
  const binary = process.env.CHROMIUM_BIN ?? '/usr/bin/chromium'
  return existsSync(binary) ? binary : undefined
}

/** A browser without a window, closed at the end of the test; ask `needs('browser')` first. */
export async function openBrowser(): Promise<Browser> {
  const executablePath = findChromium()
  if (executablePath === undefined) throw new Error("no Chromium: ask needs('browser') first")
  const { chromium } = await import('playwright-core')
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-background-networking'] })
  onTestFinished(() => browser.close())
  return browser
}
