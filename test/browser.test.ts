/// <reference types="vite/types/importMeta.d.ts" />
/** Runs every `*.browser.test.ts`. As one file they share one worker process, so one browser runs at a time. */
import { afterAll, beforeAll, describe } from 'vitest'
import { findChromium, sharedBrowser, stopSharedBrowser } from './support/browser.ts'

if (findChromium() !== undefined) {
  beforeAll(sharedBrowser)
  afterAll(stopSharedBrowser)
}

for (const [file, load] of Object.entries(import.meta.glob('./**/*.browser.test.ts')))
  describe(file, load as () => Promise<void>)
