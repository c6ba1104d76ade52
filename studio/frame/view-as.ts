import { useState } from "preact/hooks";
import type { ViewedToken } from "#operations/admin-types";
import { adminCall } from "../api/admin.ts";
import { requestRoles } from "../api/catalog.ts";
import { sessionState, setViewAs, type ViewedCaller } from "../api/session.ts";
import { useCatalog } from "../api/use-catalog.ts";
import { Button } from "../components/button.ts";
import { Dialog } from "../components/dialog.ts";
import { Icon } from "../components/icon.ts";
import { Notice } from "../components/notice.ts";
import { showToast } from "../components/toast.ts";
import { type FoundUser, UserSearch, userName } from "../components/user-search.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";

/** A role, or the id of a user. */
type ViewedSubject = { readonly role: string } | { readonly user: string };

const RENEWAL_SHARE = 0.8;

let renewal: ReturnType<typeof setTimeout> | undefined;

/** The button and the dialog that choose the caller whose rows Studio shows. */
export function ViewAsButton() {
  const [isOpen, setOpen] = useState(false);
  return html`
    <${Button} kind="quiet" icon="eye" onClick=${() => setOpen(true)}>${texts.viewAs.title}<//>
    ${isOpen && html`<${ViewAsDialog} onClose=${() => setOpen(false)} />`}
  `;
}

function ViewAsDialog({ onClose }: { onClose: () => void }) {
  const { value: catalog } = useCatalog();
  const [error, setError] = useState<Error | null>(null);
  const choose = async (subject: ViewedSubject, label: string) => {
    try {
      await viewAs(subject, label);
      onClose();
    } catch (refused) {
      setError(refused as Error);
    }
  };
  const roles = catalog ? requestRoles(catalog) : [];
  const chooseUser = (user: FoundUser) => choose({ user: user.id }, userName(user));
  return html`
    <${Dialog} title=${texts.viewAs.title} onClose=${onClose}>
      <p>${texts.viewAs.intro}</p>
      ${error && html`<${Notice} kind="error" error=${error} />`}
      <section class="stack" aria-label=${texts.viewAs.roles}>
        <h3>${texts.viewAs.roles}</h3>
        <div class="row">
          ${roles.map((name) => html`<${Button} key=${name} onClick=${() => choose({ role: name }, name)}>${name}<//>`)}
        </div>
      </section>
      <section class="stack" aria-label=${texts.viewAs.users}>
        <h3>${texts.viewAs.users}</h3>
        <${UserSearch} onChoose=${chooseUser} />
      </section>
    <//>
  `;
}

/** The bar above the page while another caller's rows are shown. */
export function ViewAsBar({ viewed: { label, role } }: { readonly viewed: ViewedCaller }) {
  return html`
    <div class="view-as-bar" role="status">
      <${Icon} name="eye" />
      <span>${texts.frame.viewingAs(label === role ? label : texts.viewAs.userInRole(label, role))}</span>
      <${Button} size="small" onClick=${stopViewing}>${texts.frame.stopViewing}<//>
    </div>
  `;
}

/** Requests a token for the subject, and the next one before it expires. */
async function viewAs(subject: ViewedSubject, label: string): Promise<void> {
  const token = await adminCall<ViewedToken>("POST /view-as", { body: subject });
  clearTimeout(renewal);
  setViewAs({ ...token, label });
  const lifetime = token.expires_at * 1000 - Date.now();
  renewal = setTimeout(() => void renew(subject, label), lifetime * RENEWAL_SHARE);
}

async function renew(subject: ViewedSubject, label: string): Promise<void> {
  const state = sessionState.get();
  if (state.status !== "signed-in" || state.viewAs?.label !== label) return;
  try {
    await viewAs(subject, label);
  } catch (error) {
    stopViewing();
    showToast({ kind: "error", text: texts.viewAs.ended(label, (error as Error).message) });
  }
}

function stopViewing(): void {
  clearTimeout(renewal);
  setViewAs(null);
}
