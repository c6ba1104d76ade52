import { useState } from "preact/hooks";
import { requestRoles } from "../api/catalog.ts";
import { sessionState } from "../api/session.ts";
import { useCatalog } from "../api/use-catalog.ts";
import { useLoaded } from "../api/use-loaded.ts";
import { Button } from "../components/button.ts";
import { Dialog } from "../components/dialog.ts";
import { Select } from "../components/select.ts";
import { type FoundUser, readUserName, UserSearch } from "../components/user-search.ts";
import { html } from "../html.ts";
import { useSearchParameter } from "../router.ts";
import { useStore } from "../store.ts";
import { texts } from "../texts.ts";
import type { TriedAs } from "./access-api.ts";

const words = texts.access.why;
/** The choice of the caller of "View as", beside the roles. */
const VIEWED = "";
/** The choice of a user. No role has this name. */
const OF_USER = " user";

/** Returns the user or the role that the address names, or the caller of "View as"; null until the roles are known. */
export function useCaller(): TriedAs | null {
  const [user] = useSearchParameter("user");
  const { viewed, role } = useRoles();
  if (user !== null) return { user };
  if (viewed) return { role: viewed.role, claims: viewed.claims };
  return role ? { role } : null;
}

/** The roles, of which the address may name another one, and the caller of "View as" unless it names one. */
function useRoles() {
  const [chosen] = useSearchParameter("role");
  const { value: catalog } = useCatalog();
  const state = useStore(sessionState);
  const known = catalog ? requestRoles(catalog) : [];
  const roles = chosen && !known.includes(chosen) ? [chosen, ...known] : known;
  const viewAs = state.status === "signed-in" ? state.viewAs : null;
  return { roles, viewAs, viewed: chosen ? null : viewAs, role: chosen || roles[0] };
}

/** Chooses the caller whose requests are explained. */
export function CallerChoice() {
  const [user, setUser] = useSearchParameter("user");
  const [, setRole] = useSearchParameter("role");
  const [isChoosing, setChoosing] = useState(false);
  const { roles, viewAs, viewed, role } = useRoles();
  const { value: name } = useLoaded(async (signal) => (user === null ? null : readUserName(user, signal)), [user]);
  const chooseUser = ({ id }: FoundUser) => {
    setRole(null, { replace: true });
    setUser(id);
    setChoosing(false);
  };
  const chooseRole = (value: string) => {
    if (value === OF_USER) return;
    setUser(null, { replace: true });
    setRole(value);
  };
  const callers = [
    ...(user === null ? [] : [{ value: OF_USER, label: name ?? user }]),
    ...(viewAs ? [{ value: VIEWED, label: viewAs.label }] : []),
    ...roles,
  ];
  const options = callers.length > 0 ? callers : [{ value: "", label: texts.components.loading }];
  const value = user === null ? (viewed ? VIEWED : (role ?? "")) : OF_USER;
  return html`
    <${Select} label=${words.as} value=${value} options=${options} disabled=${callers.length === 0} onChange=${chooseRole} />
    <${Button} onClick=${() => setChoosing(true)}>${words.chooseUser}<//>
    ${isChoosing && html`<${Dialog} title=${words.chooseUser} onClose=${() => setChoosing(false)}><${UserSearch} onChoose=${chooseUser} /><//>`}
  `;
}
