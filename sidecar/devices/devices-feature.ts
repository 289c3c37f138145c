import type { Feature } from '../feature.ts'
import type { Platform } from '../platform.ts'
import { confirmPage } from './confirm-page.ts'
import { createConfirmations } from './confirmations.ts'
import { hashingOf } from './passwords.ts'

/** Serves the page behind the link of a confirmation mail. Device handlers run with all others (`databases/`). */
export function devicesFeature({ config, couch, embedded, clock, log }: Platform): Feature {
  const database = couch.answers.db(config.controlDb)
  const confirmations = createConfirmations({ database, clock, hashing: hashingOf(embedded) })
  return { routes: [confirmPage({ confirmations, log })] }
}
