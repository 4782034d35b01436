import { mount } from 'svelte'
import './app.css'
import App from './App.svelte'
import { i18n } from './lib/i18n.svelte'
import { router, takeLoginSecret } from './lib/router.svelte'
import { current } from './lib/session.svelte'
import { startTheme } from './lib/theme.svelte'

const secret = takeLoginSecret()
// A link that is opened in a tab with this page does not load it again.
addEventListener('hashchange', () => {
  const secret = takeLoginSecret()
  if (secret !== null) void current.start(secret)
})
startTheme()
router.start()
await Promise.all([i18n.start(), current.start(secret)])
mount(App, { target: document.getElementById('app')! })
