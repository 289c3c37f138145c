import { ConfigError } from '../core/errors.ts'
import { compileDdocs } from '../deploy/compile.ts'
import { DeployError } from '../deploy/errors.ts'

/**
 * Tries the folders of `SIDECAR_CHANNEL_DDOCS` at the start: what fails there would fail with each channel.
 *
 * @throws ConfigError with every fault
 */
export async function checkTemplates(folders: readonly string[]): Promise<void> {
  const faults: string[] = []
  for (const folder of folders) {
    try {
      await compileDdocs({ folder })
    } catch (thrown) {
      if (!(thrown instanceof DeployError)) throw thrown
      faults.push(...thrown.faults.map((fault) => `SIDECAR_CHANNEL_DDOCS: ${fault}`))
    }
  }
  if (faults.length > 0) throw new ConfigError(faults)
}
