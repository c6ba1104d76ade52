import { useState } from "preact/hooks";
import { type SessionState, sessionState } from "../api/session.ts";
import { Button } from "../components/button.ts";
import { CodeBlock } from "../components/code-block.ts";
import { Dialog } from "../components/dialog.ts";
import { Icon } from "../components/icon.ts";
import { html } from "../html.ts";
import { pathTo } from "../router.ts";
import { useStore } from "../store.ts";
import { formatTime } from "../texts/format.ts";
import { texts } from "../texts.ts";

const words = texts.api;

type ApiPage = { readonly path: string; readonly title: string; readonly about: string };

/** The button and the dialog for users of the APIs: the pages that send requests, the address, and a token. */
export function ApiButton() {
  const [isOpen, setOpen] = useState(false);
  return html`
    <${Button} kind="quiet" icon="terminal" onClick=${() => setOpen(true)}>${words.title}<//>
    ${isOpen && html`<${ApiDialog} onClose=${() => setOpen(false)} />`}
  `;
}

function ApiDialog({ onClose }: { readonly onClose: () => void }) {
  const state = useStore(sessionState);
  if (state.status !== "signed-in") return null;
  const { role, access_token: token, expires_at: expiresAt } = state.viewAs ?? state.session;
  const lasts = expiresAt === null ? words.role(role) : words.roleUntil(role, formatTime(expiresAt * 1000));
  return html`
    <${Dialog} title=${words.title} onClose=${onClose}>
      <ul class="stack api-pages">
        ${pagesOf(state).map(
          ({ path, title, about }) => html`
            <li key=${path}>
              <a href=${path} target="_blank" rel="noreferrer"><${Icon} name="external" /> ${title}</a>
              <p class="quiet">${about}</p>
            </li>
          `,
        )}
      </ul>
      <section class="stack" aria-label=${words.address}>
        <h3>${words.address}</h3>
        <${CodeBlock} label=${words.address} text=${window.location.origin} />
      </section>
      <section class="stack" aria-label=${words.token}>
        <h3>${words.token}</h3>
        <p>${lasts} ${words.tokenUse}</p>
        <${CodeBlock} label=${words.token} text=${token} />
        <p class="quiet">${words.keys} <a href=${pathTo("people", "keys")} onClick=${onClose}>${words.makeKey}</a></p>
      </section>
    <//>
  `;
}

function pagesOf({ session }: Extract<SessionState, { status: "signed-in" }>): readonly ApiPage[] {
  return [
    ...(session.studio.graphiql ? [{ path: "/graphiql", ...words.graphiql }] : []),
    { path: "/docs", ...words.reference },
    { path: "/docs/guide/table-interface", ...words.tableInterface },
  ];
}
