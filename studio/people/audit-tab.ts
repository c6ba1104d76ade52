import { useState } from "preact/hooks";
import type { AuditRecord } from "#operations/admin-types";
import { useLoaded } from "../api/use-loaded.ts";
import { Button } from "../components/button.ts";
import { TextField } from "../components/field.ts";
import { Notice } from "../components/notice.ts";
import { Empty, Loading } from "../components/page.ts";
import { PlainTable } from "../components/plain-table.ts";
import { html } from "../html.ts";
import { pathTo, useSearchParameter } from "../router.ts";
import { formatTime } from "../texts/format.ts";
import { texts } from "../texts.ts";
import { type AuditFilter, readAuditLog } from "./people-api.ts";

/** The audit log; its filters are in the address. */
export function AuditTab() {
  const [event, setEvent] = useSearchParameter("event");
  const [user, setUser] = useSearchParameter("user");
  const [from, setFrom] = useSearchParameter("from");
  const [to, setTo] = useSearchParameter("to");
  const { columns, audit } = texts.people;
  const fields = [
    { label: columns.event, hint: audit.eventHint, type: "search", value: event, set: setEvent },
    { label: columns.user, hint: audit.userHint, type: "search", value: user, set: setUser },
    { label: audit.from, type: "date", value: from, set: setFrom },
    { label: audit.to, type: "date", value: to, set: setTo },
  ];
  const filter = { event: event ?? "", user: user ?? "", from: startOfDay(from), to: startOfDay(to) };
  return html`
    <div class="row audit-filter">
      ${fields.map(
        ({ set, value, ...field }) =>
          html`<${TextField} key=${field.label} ...${field} value=${value ?? ""} onInput=${(text: string) => set(text || null, { replace: true })} />`,
      )}
    </div>
    <${AuditEntries} key=${JSON.stringify(filter)} filter=${filter} />
  `;
}

/** Returns the start of the day in the browser's time zone. */
function startOfDay(day: string | null): string {
  const time = day ? new Date(`${day}T00:00:00`) : null;
  return time && !Number.isNaN(time.getTime()) ? time.toISOString() : "";
}

/** The newest page of entries, with older ones below it. */
function AuditEntries({ filter }: { readonly filter: AuditFilter }) {
  const [older, setOlder] = useState<readonly AuditRecord[]>([]);
  const [before, setBefore] = useState("");
  const { value, error, isLoading, reload } = useLoaded(
    (signal) => readAuditLog({ ...filter, before }, signal),
    [before],
  );
  const entries = [...older, ...(value?.entries ?? [])];
  const showMore = () => {
    setOlder(entries);
    setBefore(value!.next!);
  };
  return html`
    ${error && html`<${Notice} kind="error" error=${error} onRetry=${reload} />`}
    ${!value && isLoading && html`<${Loading} />`}
    ${value && entries.length === 0 && html`<${Empty}>${texts.people.audit.none}<//>`}
    ${entries.length > 0 && html`<${AuditTable} entries=${entries} />`}
    ${value?.next && html`<div class="row"><${Button} busy=${isLoading} onClick=${showMore}>${texts.people.audit.older}<//></div>`}
  `;
}

function AuditTable({ entries }: { readonly entries: readonly AuditRecord[] }) {
  const { time, event, user, by, address, details } = texts.people.columns;
  const unique = [...new Map(entries.map((entry) => [entry.id, entry])).values()];
  const rows = unique.map((entry) => ({
    key: entry.id,
    cells: [
      formatTime(entry.at),
      html`<code>${entry.event}</code>`,
      linkTo(entry.user),
      linkTo(entry.by),
      entry.address ?? "",
      html`<code class="audit-details">${textOf(entry.details)}</code>`,
    ],
  }));
  return html`<${PlainTable} label=${texts.people.tabs.audit} heads=${[time, event, user, by, address, details]} rows=${rows} />`;
}

function linkTo(user: AuditRecord["user"]) {
  if (!user) return "";
  if (user.id === null) return texts.people.audit.deletedUser(user.key);
  return html`<a href=${pathTo("people", "users", user.id)}>${user.email ?? user.id}</a>`;
}

function textOf(details: AuditRecord["details"]): string {
  return Object.entries(details)
    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join("\n");
}
