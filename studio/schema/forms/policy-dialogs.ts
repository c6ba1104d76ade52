import type { RowsToCount } from "#operations/admin-types";
import {
  type DatabaseDescription,
  type DescribedPolicy,
  type DescribedTable,
  nameKey,
  requestRoles,
} from "../../api/catalog.ts";
import { Checkbox, TextArea, TextField } from "../../components/field.ts";
import { Select } from "../../components/select.ts";
import { html } from "../../html.ts";
import { quoteName } from "../../sql-text.ts";
import { texts } from "../../texts.ts";
import { Choices, FormDialog, type FormEvents, useForm } from "./form-dialog.ts";
import {
  alterPolicy,
  changeGrants,
  type Membership,
  membershipCondition,
  POLICY_COMMANDS,
  type PolicyForm,
  PRIVILEGES,
  type Privilege,
  type PrivilegeMatrix,
} from "./policy-sql.ts";

const words = texts.schemaForms;

type PolicyDialogProps = FormEvents & {
  readonly catalog: DatabaseDescription;
  readonly table: DescribedTable;
  /** The policy; null for a new one. */
  readonly policy: DescribedPolicy | null;
};

const NEW_POLICY: PolicyForm = { name: "", command: "all", permissive: true, roles: [], using: "", check: "" };

export function PolicyDialog({ catalog, table, policy, ...events }: PolicyDialogProps) {
  const [form, change] = useForm<PolicyForm>(policy ? toForm(policy) : NEW_POLICY);
  const { command } = form;
  const sql = form.name.trim() === "" ? null : alterPolicy(table, policy?.name ?? form.name, form);
  return html`
    <${FormDialog} title=${policy ? words.editPolicy(policy.name) : words.newPolicy} name=${`policy ${form.name} of ${table.name}`} sql=${sql} counted=${rowsOf(table, catalog)} ...${events}>
      ${!policy && html`<${TemplateSelect} catalog=${catalog} table=${table} onChoose=${change} />`}
      <div class="form-grid">
        <${TextField} label=${words.name} value=${form.name} onInput=${(name: string) => change({ name })} />
        <${Select} label=${words.command} value=${command} options=${POLICY_COMMANDS}
          onChange=${(value: PolicyForm["command"]) => change({ command: value })} />
      </div>
      <${Choices} label=${words.roles} hint=${words.rolesHint} options=${requestRoles(catalog)} chosen=${form.roles}
        onChange=${(roles: readonly string[]) => change({ roles })} />
      ${
        command !== "insert" &&
        html`<${TextArea} label=${words.usingRows} hint=${words.policyExample} rows=${2} value=${form.using} onInput=${(using: string) => change({ using })} />`
      }
      ${
        command !== "select" &&
        command !== "delete" &&
        html`<${TextArea} label=${words.checkRows} hint=${words.policyExample} rows=${2} value=${form.check} onInput=${(check: string) => change({ check })} />`
      }
      <${Checkbox} label=${words.permissive} checked=${form.permissive} onChange=${(permissive: boolean) => change({ permissive })} />
      <p class="field-hint">${words.permissiveHint}</p>
    <//>
  `;
}

function toForm({ name, command, permissive, roles, using, check }: DescribedPolicy): PolicyForm {
  const named = roles.filter((role) => role !== "public");
  return { name, command, permissive, roles: named, using: using ?? "", check: check ?? "" };
}

type TemplateSelectProps = {
  readonly catalog: DatabaseDescription;
  readonly table: DescribedTable;
  readonly onChoose: (policy: Partial<PolicyForm>) => void;
};

/** Matches columns that probably have the id of the user that a row belongs to. */
const OWNER_COLUMN = /^(user|owner|author|created_by)(_id)?$/;

const ownerColumn = ({ columns }: DescribedTable) => columns.find(({ name }) => OWNER_COLUMN.test(name))?.name;

/** Finds a table with users that shares a column with this one, besides the owner's column. */
function findMembership(table: DescribedTable, { tables }: DatabaseDescription): Membership | null {
  const shared = table.columns
    .map(({ name }) => name)
    .filter((name) => name.endsWith("_id") && !OWNER_COLUMN.test(name));
  for (const other of tables) {
    const user = ownerColumn(other);
    const column = other.columns.find(({ name }) => shared.includes(name))?.name;
    if (user === undefined || column === undefined || nameKey(other) === nameKey(table)) continue;
    return { column, table: other, organisation: column, user };
  }
  return null;
}

function TemplateSelect({ catalog, table, onChoose }: TemplateSelectProps) {
  const owner = ownerColumn(table) ?? "user_id";
  const membership = findMembership(table, catalog);
  const ofMembers = membership && membershipCondition(membership);
  const condition = `${quoteName(owner)} = (select auth.uid())`;
  const templates: Readonly<Record<string, Partial<PolicyForm>>> = {
    "everybody reads": { name: "select_all", command: "select", roles: [], using: "true", check: "" },
    "owner reads and writes": {
      name: "all_own",
      command: "all",
      roles: ["authenticated"],
      using: condition,
      check: condition,
    },
    ...(ofMembers && {
      "members read and write": {
        name: "all_members",
        command: "all",
        roles: ["authenticated"],
        using: ofMembers,
        check: ofMembers,
      },
    }),
  };
  const labels = words.templates as Readonly<Record<string, string>>;
  const options = Object.keys(templates).map((value) => ({ value, label: labels[value]! }));
  return html`
    <${Select} label=${words.template} value="" options=${[{ value: "", label: words.noTemplate }, ...options]}
      onChange=${(name: string) => onChoose(templates[name] ?? {})} />
  `;
}

/** Selects the rows to count for each role. */
function rowsOf({ schema, name }: DescribedTable, catalog: DatabaseDescription): RowsToCount {
  return { table: { schema, name }, roles: requestRoles(catalog) };
}

type GrantsDialogProps = FormEvents & {
  readonly catalog: DatabaseDescription;
  readonly table: DescribedTable;
};

/** A matrix of the privileges on a table. */
export function GrantsDialog({ catalog, table, ...events }: GrantsDialogProps) {
  const before = privilegesOf(table);
  const roles = ["public", ...requestRoles(catalog)];
  const [matrix, change] = useForm<PrivilegeMatrix>(before);
  const sql = changeGrants(table, before, matrix);
  const toggle = (role: string, privilege: Privilege) => (isGranted: boolean) => {
    const others = (matrix[role] ?? []).filter((each) => each !== privilege);
    change({ [role]: isGranted ? [...others, privilege] : others });
  };
  const row = (role: string) => html`
    <tr key=${role}>
      <th scope="row">${role}</th>
      ${PRIVILEGES.map(
        (privilege) => html`
          <td key=${privilege}>
            <${Checkbox} label=${words.grantOf(privilege, role)} hideLabel checked=${matrix[role]?.includes(privilege) ?? false}
              onChange=${toggle(role, privilege)} />
          </td>
        `,
      )}
    </tr>
  `;
  return html`
    <${FormDialog} title=${words.grants} name=${`grants of ${table.name}`} sql=${sql} counted=${rowsOf(table, catalog)} ...${events}>
      <div class="scroll-x">
        <table class="plain-table">
          <thead>
            <tr>
              <th scope="col">${words.role}</th>
              ${PRIVILEGES.map((privilege) => html`<th key=${privilege} scope="col">${privilege}</th>`)}
            </tr>
          </thead>
          <tbody>${roles.map(row)}</tbody>
        </table>
      </div>
      <p class="field-hint">${words.grantsHint}</p>
    <//>
  `;
}

function privilegesOf({ grants }: DescribedTable): PrivilegeMatrix {
  const isShown = (privilege: string): privilege is Privilege => (PRIVILEGES as readonly string[]).includes(privilege);
  return Object.fromEntries(grants.map(({ role, privileges }) => [role, privileges.filter(isShown)]));
}
