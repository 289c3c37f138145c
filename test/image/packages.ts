/** The packages of the image, by package-lock.json. */
import { join } from 'node:path'
import embeddedJson from '../../embedded/package.json' with { type: 'json' }
import packageJson from '../../package.json' with { type: 'json' }
import { read } from './files.ts'

interface Locked {
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

const { packages } = JSON.parse(read('package-lock.json')) as { packages: Readonly<Record<string, Locked>> }

/** The names of direct dependencies that a sidecar beside a CouchDB does not need. */
export const notInProduction = Object.keys({ ...packageJson.devDependencies, ...embeddedJson.dependencies })

/** The names of all packages that a sidecar beside a CouchDB needs, for every platform. */
export const production: ReadonlySet<string> = new Set(
  reach(Object.keys(packageJson.dependencies).map((name) => join('node_modules', name))).map((path) =>
    path.split('node_modules/').at(-1)!,
  ),
)

function reach(start: readonly string[]): string[] {
  const found = new Set(start)
  for (const path of found) {
    const { dependencies, optionalDependencies } = packages[path]!
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) found.add(resolve(path, name))
  }
  return [...found]
}

/** Resolves as Node does: in the package itself, then in the folders above. */
function resolve(path: string, name: string): string {
  const candidate = join(path, 'node_modules', name)
  if (candidate in packages) return candidate
  if (path === '') throw new Error(`package-lock.json lacks ${name}`)
  return resolve(path.split('/node_modules/').slice(0, -1).join('/node_modules/'), name)
}
