import { ConfigError } from '../core/errors.ts'
import type { Doc } from '../couch/documents.ts'
import { compileDdocs, ddocsFolder } from '../deploy/compile.ts'
import { nameFaults } from '../deploy/compiler.ts'
import { DeployError } from '../deploy/deploy-errors.ts'

/**
 * Compiles the folders of `SIDECAR_CHANNEL_DDOCS` at startup: a fault in them would fail for each channel.
 *
 * @throws ConfigError with every fault
 */
export async function checkTemplates(folders: readonly string[]): Promise<void> {
  if (folders.length === 0) return
  const compiled: { folder: string; ddocs: Doc[] }[] = []
  const faults: string[] = []
  for (const folder of [ddocsFolder('channel'), ...folders]) {
    try {
      compiled.push({ folder, ddocs: await compileDdocs({ folder }) })
    } catch (thrown) {
      if (!(thrown instanceof DeployError)) throw thrown
      faults.push(...thrown.faults)
    }
  }
  faults.push(...nameFaults(compiled))
  if (faults.length > 0) throw new ConfigError(faults.map((fault) => `SIDECAR_CHANNEL_DDOCS: ${fault}`))
}
