import { useEffect, useState } from "preact/hooks";
import { requestRoles } from "../api/catalog.ts";
import { actingUser, endedView, sessionState, stopViewing, viewAs } from "../api/session.ts";
import { useCatalog } from "../api/use-catalog.ts";
import type { ViewChoice, ViewedCaller } from "../api/viewed-caller.ts";
import { Button } from "../components/button.ts";
import { Dialog } from "../components/dialog.ts";
import { Icon } from "../components/icon.ts";
import { Notice } from "../components/notice.ts";
import { showToast } from "../components/toast.ts";
import { type FoundUser, UserSearch, userName } from "../components/user-search.ts";
import { html } from "../html.ts";
import { useStore } from "../store.ts";
import { texts } from "../texts.ts";

/** The button and the dialog that choose the caller whose rows Studio shows, and the name of the user that Studio acts as. */
export function ViewAsButton() {
  const [isOpen, setOpen] = useState(false);
  const user = actingUser(useStore(sessionState));
  const ended = useStore(endedView);
  useEffect(() => {
    if (!ended) return;
    showToast({ kind: "error", text: texts.viewAs.ended(ended.label, ended.reason) });
    endedView.set(null);
  }, [ended]);
  return html`
    <${Button} kind="quiet" icon="eye" onClick=${() => setOpen(true)}>${texts.viewAs.title}<//>
    <p class="acting-user quiet" title=${user === null ? texts.viewAs.actsAsNobodyHint : texts.viewAs.actsAsHint}>
      ${user === null ? texts.viewAs.actsAsNobody : texts.viewAs.actsAs(user)}
    </p>
    ${isOpen && html`<${ViewAsDialog} onClose=${() => setOpen(false)} />`}
  `;
}

function ViewAsDialog({ onClose }: { onClose: () => void }) {
  const { value: catalog } = useCatalog();
  const [error, setError] = useState<Error | null>(null);
  const choose = async (subject: ViewChoice["subject"], label: string) => {
    try {
      await viewAs({ subject, label });
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
