import tseslint from 'typescript-eslint'

/**
 * Imports go down only: what is in a layer may import from the layers below its own, and within it, never from one
 * above. The list is the architecture; docs/architecture.md draws it.
 */
const layers = [
  ['testing'],
  ['main', 'cli'],
  ['sidecar'],
  // the features
  ['operator-page'],
  ['databases'],
  ['channels', 'inbox'],
  ['devices'],
  ['accounts'],
  ['deploy'],
  ['canary', 'deletions', 'global-changes', 'history', 'indexes', 'schedules'],
  // what they share
  ['platform'],
  ['config', 'embedded', 'live-settings'],
  ['mail', 'webhooks'],
  ['docstate'],
  ['feed', 'workers'],
  ['events'],
  ['feature'],
  ['metrics', 'tracing'],
  ['http'],
  ['couch'],
  ['core'],
]

const downOnly = layers.flatMap((layer, depth) => {
  const above = layers.slice(0, depth).flat()
  if (above.length === 0) return []
  const restrict = (files, here) => {
    const group = above.flatMap((name) => [`${here}/${name}.ts`, `${here}/${name}/*`])
    const message = `${layer.join(', ')}: imports go down only (docs/architecture.md)`
    return { files, rules: { 'no-restricted-imports': ['error', { patterns: [{ group, message }] }] } }
  }
  return [
    restrict(
      layer.map((name) => `sidecar/${name}.ts`),
      '.',
    ),
    restrict(
      layer.map((name) => `sidecar/${name}/**`),
      '..',
    ),
    restrict(
      layer.map((name) => `sidecar/${name}/*/**`),
      '../..',
    ),
  ]
})

export default tseslint.config(
  {
    ignores: [
      '**/dist/**',
      'node_modules/**',
      '*.js',
      'bench/*.js',
      'pages/**',
      'client/example/sw.js',
      'templates/**',
    ],
  },
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/return-await': ['error', 'in-try-catch'],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      '@typescript-eslint/require-await': 'off', // an async function is also a promise of not throwing at once
      'no-restricted-properties': [
        'error',
        { object: 'AbortSignal', property: 'any', message: 'It leaves something behind: core/until-any.ts does not.' },
      ],
      'no-restricted-globals': ['error', { name: 'fetch', message: 'Only sidecar/couch speaks HTTP to CouchDB.' }],
    },
  },
  ...downOnly,
  {
    files: ['sidecar/couch/**', 'sidecar/testing/**', 'client/**', 'test/**', 'bench/**'],
    rules: { 'no-restricted-globals': 'off' },
  },
)
