/**
 * Compiles if a source is newer than what was compiled last: after `npm ci`, and before `npm start` and `npm run
 * deploy:ddocs`, which else would run what was there yesterday. Looking takes milliseconds, compiling seconds. Where there
 * is no compiler (an installation without development dependencies), the types are taken away unchecked.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readdirSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'

const root = import.meta.dirname
const parts = [
  { project: 'tsconfig.build.json', from: '.', folders: ['sidecar', 'ddocs'], to: 'dist', program: 'sidecar/main.js' },
  { project: 'embedded/tsconfig.json', from: 'embedded/src', folders: ['.'], to: 'embedded/dist', program: 'index.js' },
]
const compiler = join(root, 'node_modules/typescript/bin/tsc')
for (const { project, from, folders, to, program } of parts) {
  const found = folders.flatMap((folder) => filesIn(join(from, folder)))
  if (found.length === 0) continue // an installed package has none
  const sources = [...found, ...['tsconfig.json', project].flatMap(filesIn)]
  const built = changedAt(join(to, program))
  const newer = sources.find((file) => changedAt(file) >= built)
  if (newer === undefined) continue
  if (existsSync(compiler)) {
    console.error(`${newer} is newer than ${to}/: compiling`)
    const options = { cwd: root, stdio: ['ignore', 2, 2] } // standard output is for what runs next
    process.exitCode = spawnSync(process.execPath, [compiler, '-p', project], options).status ?? 1
    if (process.exitCode !== 0) break
  } else {
    console.error(`${newer} is newer than ${to}/, and there is no TypeScript: its types are taken away unchecked`)
    const { stripTypes } = await import('./strip-types.js')
    const files = found.filter((file) => /(?<!\.d)\.tsx?$/.test(file)).map((file) => relative(from, file))
    await stripTypes(join(root, from), files, join(root, to))
  }
  chmodSync(join(root, to, program), 0o755) // npx runs it as it is
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
