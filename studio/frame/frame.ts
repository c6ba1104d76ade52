import { useRef } from "preact/hooks";
import { type SessionState, sessionState, signOut } from "../api/session.ts";
import { IconButton } from "../components/button.ts";
import { Icon } from "../components/icon.ts";
import { Menu, type MenuItem } from "../components/menu.ts";
import { ProductMark } from "../components/product-mark.ts";
import { Toasts } from "../components/toast.ts";
import { html } from "../html.ts";
import { pathTo, useSegments } from "../router.ts";
import { makeStore, useStore } from "../store.ts";
import { texts } from "../texts.ts";
import { ApiButton } from "./api-dialog.ts";
import { CurrentPage } from "./current-page.ts";
import { pages } from "./pages.ts";
import { ShortcutButtons, Shortcuts } from "./shortcuts.ts";
import { SignIn } from "./sign-in.ts";
import { chooseTheme, THEMES, theme } from "./theme.ts";
import { ViewAsBar, ViewAsButton } from "./view-as.ts";

/** On narrow screens the navigation is hidden until it is opened. */
const isNavigationOpen = makeStore(false);

export function Frame() {
  const state = useStore(sessionState);
  return html`
    <a class="skip-link" href="#content">${texts.frame.skipToContent}</a>
    ${state.status === "signed-in" ? html`<${SignedInFrame} state=${state} />` : html`<${SignIn} state=${state} />`}
    ${state.status === "signed-in" && html`<${Shortcuts} />`}
    <${Toasts} />
  `;
}

type SignedIn = Extract<SessionState, { status: "signed-in" }>;

function SignedInFrame({ state }: { state: SignedIn }) {
  const main = useRef<HTMLElement>(null);
  return html`
    ${state.viewAs && html`<${ViewAsBar} viewed=${state.viewAs} />`}
    <div class="frame">
      <${Navigation} state=${state} />
      <main id="content" class="content" tabindex="-1" ref=${main}><${CurrentPage} /></main>
    </div>
  `;
}

function Navigation({ state }: { state: SignedIn }) {
  const [current = pages[0]!.name] = useSegments();
  const isOpen = useStore(isNavigationOpen);
  return html`
    <header class=${isOpen ? "sidebar open" : "sidebar"}>
      <div class="sidebar-head">
        <a class="sidebar-title" href=${pathTo()}><${ProductMark} /> ${texts.frame.title}</a>
        <${IconButton}
          class="sidebar-toggle"
          icon="menu"
          label=${texts.frame.openMenu}
          expanded=${isOpen}
          onClick=${() => isNavigationOpen.set(!isOpen)}
        />
      </div>
      <nav aria-label=${texts.frame.navigation}>
        ${pages.map(
          ({ name, title, icon }) => html`
            <a
              key=${name}
              href=${pathTo(name)}
              aria-current=${name === current ? "page" : undefined}
              onClick=${() => isNavigationOpen.set(false)}
            >
              <${Icon} name=${icon} /><span>${title}</span>
            </a>
          `,
        )}
      </nav>
      <div class="sidebar-foot">
        <${ViewAsButton} />
        <${ApiButton} />
        <${ShortcutButtons} />
        <${ThemeMenu} />
        <${AccountMenu} state=${state} />
      </div>
    </header>
  `;
}

function ThemeMenu() {
  const chosen = useStore(theme);
  const items: MenuItem[] = THEMES.map((name) => ({
    label: texts.frame.themes[name],
    isChecked: name === chosen,
    onSelect: () => chooseTheme(name),
  }));
  return html`<${Menu} label=${texts.frame.theme} icon="contrast" items=${items} />`;
}

function AccountMenu({ state: { session } }: { state: SignedIn }) {
  const name = session.user?.name || session.user?.email || session.role;
  const items: MenuItem[] = [
    { label: texts.frame.startPage, href: "/" },
    { label: texts.frame.documentation, href: "/docs/guide" },
    { label: texts.signIn.signOut, onSelect: signOut },
  ];
  return html`<${Menu} label=${texts.frame.signedInAs(name)} icon="person" items=${items} />`;
}
