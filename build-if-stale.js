/**
 * Compiles if a source is newer than what was compiled last: after `npm ci`, and before `npm start` and `npm run
 * deploy:ddocs`, which else would run what was there yesterday. Looking takes milliseconds, compiling seconds. Where there
 * is no compiler (an installation without development dependencies), the types are taken away unchecked.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

const root = import.meta.dirname
const sources = ['sidecar', 'ddocs', 'tsconfig.json', 'tsconfig.build.json'].flatMap(filesIn)
const program = 'dist/sidecar/main.js'
const built = changedAt(program)
const newer = sources.find((file) => changedAt(file) >= built)
const compiler = join(root, 'node_modules/typescript/bin/tsc')
if (newer !== undefined && existsSync(compiler)) {
  console.error(`${newer} is newer than dist/: compiling`)
  const options = { cwd: root, stdio: ['ignore', 2, 2] } // standard output is for what runs next
  process.exitCode = spawnSync(process.execPath, [compiler, '-p', 'tsconfig.build.json'], options).status ?? 1
  if (process.exitCode === 0) chmodSync(join(root, program), 0o755) // npx runs it as it is
} else if (newer !== undefined) {
  console.error(`${newer} is newer than dist/, and there is no TypeScript: its types are taken away unchecked`)
  const { stripTypes } = await import('./strip-types.js')
  await stripTypes(
    root,
    ['ddocs', 'sidecar'].flatMap(filesIn).filter((file) => /(?<!\.d)\.ts$/.test(file)),
  )
  chmodSync(join(root, program), 0o755)
}

/** @param {string} path a file or a folder, relative to the root; none of it need be there */
function filesIn(path) {
  const found = statSync(join(root, path), { throwIfNoEntry: false })
  if (!found?.isDirectory()) return found ? [path] : []
  return readdirSync(join(root, path), { recursive: true })
    .map((name) => join(path, String(name)))
    .filter((file) => statSync(join(root, file)).isFile())
}

/** @param {string} file 0 for one that is not there */
function changedAt(file) {
  return statSync(join(root, file), { throwIfNoEntry: false })?.mtimeMs ?? 0
}
