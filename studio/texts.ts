/** The English texts of the pages, by part. Texts with values are functions. */
export const texts = {
  frame: {
    title: "Studio",
    navigation: "Studio",
    skipToContent: "Skip to the content",
    notFound: "There is no such page.",
    loadFailed: "This page could not be loaded.",
    theme: "Colour scheme",
    themes: { system: "As the system", light: "Light", dark: "Dark" },
    viewingAs: (label: string) => `Viewing as ${label}`,
    stopViewing: "Stop",
    openMenu: "Open the navigation",
    account: "Account",
    signedInAs: (name: string) => `Signed in as ${name}`,
    startPage: "Start page",
    documentation: "Documentation",
    closeMessage: "Close the message",
  },
  signIn: {
    title: "Sign in to Studio",
    intro: "Studio shows what the interfaces of this service give to an administrator.",
    signIn: "Sign in",
    or: "or use a token",
    token: "Access token or API key of an administrator",
    useToken: "Use the token",
    tokenRefused: "The token is not valid, or is not an administrator's.",
    starting: "Signing in…",
    signOut: "Sign out",
  },
  components: {
    loading: "Loading…",
    copy: "Copy",
    copied: "Copied",
    close: "Close",
    cancel: "Cancel",
    retry: "Try again",
    errorCode: (code: string) => `Error code ${code}`,
  },

  tables: {
    title: "Tables",
  },

  sql: {
    title: "SQL",
  },

  schema: {
    title: "Schema",
  },

  access: {
    title: "Access",
  },

  try: {
    title: "Try",
  },

  people: {
    title: "People",
  },

  running: {
    title: "Running",
  },

  placeholder: (title: string) => `${title} is not available yet.`,
};
