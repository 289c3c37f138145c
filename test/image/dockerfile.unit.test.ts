/** Dockerfile and .dockerignore, checked without a container engine. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { describeSettings, loadConfig } from '../../sidecar/config.ts'
import { root } from '../acceptance/build.ts'
import { pairsOf, read, stages, textsOf } from './files.ts'

const [build, final] = stages() as [ReturnType<typeof stages>[0], ReturnType<typeof stages>[0]]

test('the image builds and runs on the same Node, which package.json allows', () => {
  const [, floor] = /^>=(\d+)\./.exec(packageJson.engines.node)!
  const [, version] = /^ARG NODE_VERSION=(\d+)$/m.exec(read('Dockerfile'))!
  expect(Number(version)).toBeGreaterThanOrEqual(Number(floor))
  const bases = [build, final].map((stage) => textsOf(stage, 'FROM')[0]!.replace(' AS build', ''))
  expect(bases).toEqual(Array(2).fill('node:${NODE_VERSION}-bookworm-slim'))
})

test('every copied path exists, and .dockerignore passes exactly these paths', () => {
  const copied = [build, final]
    .flatMap((stage) => textsOf(stage, 'COPY'))
    .filter((text) => !text.includes('--from='))
    .flatMap((text) => text.split(' ').slice(0, -1))
  for (const path of copied) expect(existsSync(join(root, path)), path).toBe(true)
  const [first, ...rest] = read('.dockerignore')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  expect(first).toBe('*')
  expect(new Set(rest)).toEqual(new Set(copied.map((path) => `!${path}`)))
})

test('every compiled path is copied before the build', () => {
  const { include } = JSON.parse(read('tsconfig.build.json')) as { include: string[] }
  const before = build.slice(
    0,
    build.findIndex(({ text }) => text.startsWith('npm run build')),
  )
  expect(textsOf(before, 'COPY').join(' ').split(' ')).toEqual(expect.arrayContaining(include))
})

test('the image labels match the package', () => {
  expect(pairsOf(final, 'LABEL')).toEqual({
    'org.opencontainers.image.title': packageJson.name,
    'org.opencontainers.image.description': packageJson.description,
    'org.opencontainers.image.version': packageJson.version,
    'org.opencontainers.image.licenses': packageJson.license,
  })
})

test('the image settings exist and have valid values', () => {
  const { NODE_ENV, TMPDIR, ...settings } = pairsOf(final, 'ENV')
  expect({ NODE_ENV, TMPDIR }).toEqual({ NODE_ENV: 'production', TMPDIR: '/dev/shm' })
  expect(describeSettings().map(({ name }) => name as string)).toEqual(expect.arrayContaining(Object.keys(settings)))
  expect(loadConfig({ env: settings, envFile: join(root, 'test/image/.env') })).toMatchObject({ host: '0.0.0.0' })
  expect(textsOf(final, 'EXPOSE')).toEqual([settings.SIDECAR_PORT])
})

test('the image user is a number, so that an orchestrator sees that it is not root', () => {
  expect(textsOf(final, 'USER')).toEqual([expect.stringMatching(/^[1-9]\d*:[1-9]\d*$/)])
})

test('Node starts without a shell or npm, which would swallow signals', () => {
  const [entrypoint] = textsOf(final, 'ENTRYPOINT')
  expect(JSON.parse(entrypoint!)).toEqual(['node', `/app/${packageJson.bin['couchdb-sidecar']}`])
  expect(textsOf(final, 'CMD')).toEqual(['["start"]'])
})

test.each([
  ['passes where the sidecar answers', 200, 0],
  ['fails where something else answers', 404, 1],
  ['fails where nothing listens', undefined, 1],
])('the health check %s', async (_, status, exitCode) => {
  const [, command] = /CMD (\[.*\])$/.exec(textsOf(final, 'HEALTHCHECK')[0]!)!
  const [, ...args] = JSON.parse(command!) as string[]
  const requested: (string | undefined)[] = []
  const server = createServer((request, response) => {
    requested.push(request.url)
    response.writeHead(status!).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  const close = () => new Promise((resolve) => server.close(resolve))
  if (status === undefined) await close()
  const code = await new Promise((resolve) => {
    const env = { ...process.env, SIDECAR_PORT: String(port) }
    execFile(process.execPath, args, { env }).on('exit', resolve)
  })
  if (status !== undefined) await close()
  expect({ code, requested }).toEqual({ code: exitCode, requested: status === undefined ? [] : ['/_live'] })
})
