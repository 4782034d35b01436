import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig } from 'vite'

export default defineConfig({
  // Relative addresses: a proxy may put the page below any path.
  base: './',
  plugins: [svelte()],
  build: {
    target: 'es2022',
    modulePreload: { polyfill: false },
    // The Content-Security-Policy allows no data: addresses.
    assetsInlineLimit: 0,
    rolldownOptions: {
      // One file for what the views share: the views that are loaded later are small.
      output: { codeSplitting: { groups: [{ name: 'shared', test: /node_modules|\/src\/(lib|parts|api)/ }] } },
    },
    license: { fileName: 'licenses.md' },
  },
  server: { proxy: { '/api': process.env.WINDLASS_URL ?? 'http://127.0.0.1:7480' } },
})
