import { execFile } from 'node:child_process'
import { copyFileSync, readFileSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { ddocFolder } from './deploy/folder.ts'

const COMPILER = 'node_modules/typescript/bin/tsc'

/** A checkout that was compiled after its last source change, with a stub compiler that only records its calls. */
function checkout(compiler: string) {
  const files = [
    'sidecar/cli/start.ts',
    'ddocs/lib/deep/map.ts',
    'tsconfig.json',
    'tsconfig.build.json',
    'dist/sidecar/main.js',
    'embedded/src/server/main.ts',
    'embedded/tsconfig.json',
    'embedded/dist/index.js',
  ]
  const root = ddocFolder({ ...Object.fromEntries(files.map((file) => [file, ''])), [COMPILER]: compiler })
  for (const script of ['build-if-stale.js', 'strip-types.js']) {
    copyFileSync(join(import.meta.dirname, '..', script), join(root, script))
  }
  writeFileSync(join(root, 'package.json'), '{ "type": "module" }')
  const date = (file: string, seconds: number) => utimesSync(join(root, file), seconds, seconds)
  for (const file of files) date(file, file.includes('dist/') ? 2000 : 1000)
  return { root, date }
}

/** Runs the script as `npm start` does. */
async function run(root: string): Promise<{ code: number; stdout: string; stderr: string }> {
  const node = promisify(execFile)
  return node(process.execPath, [join(root, 'build-if-stale.js')]).then(
    (said) => ({ code: 0, ...said }),
    (failed: unknown) => failed as { code: number; stdout: string; stderr: string },
  )
}

const TELLING = 'console.log(process.argv.slice(2).join(" "))'

test('compiles nothing while all output is newer than its sources', async () => {
  expect(await run(checkout(TELLING).root)).toEqual({ code: 0, stdout: '', stderr: '' })
})

test.each([
  ['sidecar/cli/start.ts', 'dist', 'tsconfig.build.json'],
  ['ddocs/lib/deep/map.ts', 'dist', 'tsconfig.build.json'],
  ['tsconfig.build.json', 'dist', 'tsconfig.build.json'],
  ['embedded/src/server/main.ts', 'embedded/dist', 'embedded/tsconfig.json'],
])('compiles after %s has changed', async (file, to, project) => {
  const { root, date } = checkout(TELLING)
  date(file, 3000)
  const stderr = `${file} is newer than ${to}/: compiling\n-p ${project}\n`
  expect(await run(root)).toMatchObject({ code: 0, stdout: '', stderr })
})

test('compiles both projects after a shared file has changed', async () => {
  const { root, date } = checkout(TELLING)
  date('tsconfig.json', 3000)
  const { code, stderr } = await run(root)
  expect({ code, compiled: stderr.match(/-p .*/g) }).toEqual({
    code: 0,
    compiled: ['-p tsconfig.build.json', '-p embedded/tsconfig.json'],
  })
  expect(statSync(join(root, 'dist/sidecar/main.js')).mode & 0o111, 'npx needs an executable file').toBe(0o111)
})

test('compiles a checkout without output and exits with the code of the compiler', async () => {
  const { root } = checkout('process.exit(2)')
  rmSync(join(root, 'dist'), { recursive: true })
  expect(await run(root)).toMatchObject({ code: 2 })
})

test('strips the types where the compiler is missing, so that the output matches the sources', async () => {
  const { root, date } = checkout('')
  rmSync(join(root, dirname(COMPILER)), { recursive: true })
  symlinkSync(join(import.meta.dirname, '../node_modules/acorn'), join(root, 'node_modules/acorn'))
  symlinkSync(join(import.meta.dirname, '../node_modules/esbuild'), join(root, 'node_modules/esbuild'))
  writeFileSync(
    join(root, 'sidecar/main.ts'),
    `import { type Deep, deep as found } from '../ddocs/lib/deep/map.ts'
     export * from '../ddocs/lib/deep/map.ts'
     const { deep } = await import('../ddocs/lib/deep/map.ts')
     const kept: Deep = './not-a-module.ts'
     console.log(deep === found, kept)`,
  )
  writeFileSync(join(root, 'ddocs/lib/deep/map.ts'), 'export type Deep = string\nexport const deep = 1 as number')
  date('sidecar/main.ts', 3000)
  writeFileSync(join(root, 'embedded/src/index.ts'), 'console.log(1 as number)')
  const { code, stderr } = await run(root)
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining('taken away unchecked') as string })
  const ran = await promisify(execFile)(process.execPath, [join(root, 'dist/sidecar/main.js')])
  expect(ran.stdout).toBe('true ./not-a-module.ts\n')
  expect(readFileSync(join(root, 'embedded/dist/index.js'), 'utf8')).toBe('console.log(1);\n')
  expect(await run(root)).toMatchObject({ code: 0, stderr: '' })
})

test('runs before npm start and before the deploy, and prints nothing without sources', async () => {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  const { scripts, files } = JSON.parse(text) as { scripts: Record<string, string>; files: string[] }
  expect(scripts.prestart).toBe('node build-if-stale.js')
  expect(scripts['deploy:ddocs']).toMatch(/^node build-if-stale.js && /)
  expect(files).toContain('build-if-stale.js')
  const { root } = checkout(TELLING)
  for (const file of ['sidecar', 'ddocs', 'embedded', 'tsconfig.json', 'tsconfig.build.json']) {
    rmSync(join(root, file), { recursive: true })
  }
  expect(await run(root)).toEqual({ code: 0, stdout: '', stderr: '' })
})
