/** Every page and action again with three workers: each browser request goes to the next worker. */
import { afterAll, beforeAll, describe } from 'vitest'
import { findChromium, sharedBrowser, stopSharedBrowser } from '../support/browser.ts'
import { shop } from './shop.ts'

shop.workers = 3

if (findChromium() !== undefined) {
  beforeAll(sharedBrowser)
  afterAll(stopSharedBrowser)
}

describe('three workers', async () => {
  await import('./operator-page.browser.test.ts')
  await import('./more-pages.browser.test.ts')
})
