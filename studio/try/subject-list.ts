import { useState } from "preact/hooks";
import { TextField } from "../components/field.ts";
import { Icon } from "../components/icon.ts";
import { pathTo } from "../frame/router.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import { CHANNEL, type Subject, segmentsOf, subjectLabel } from "./subjects.ts";

export type SubjectListProps = {
  readonly subjects: readonly Subject[];
  readonly current: Subject | typeof CHANNEL | undefined;
};

export function SubjectList({ subjects, current }: SubjectListProps) {
  const [filter, setFilter] = useState("");
  const matches = subjects.filter((subject) =>
    subjectLabel(subject).toLowerCase().includes(filter.trim().toLowerCase()),
  );
  const groups = [
    { title: texts.try.tables, members: matches.filter(({ kind }) => kind === "table") },
    { title: texts.try.functions, members: matches.filter(({ kind }) => kind === "function") },
  ];
  return html`
    <nav class="try-list link-list" aria-label=${texts.try.list}>
      <${TextField} label=${texts.try.filter} hideLabel type="search" placeholder=${texts.try.filter} value=${filter} onInput=${setFilter} />
      ${matches.length === 0 && html`<p class="quiet">${subjects.length === 0 ? texts.try.none : texts.try.noMatch}</p>`}
      ${groups
        .filter(({ members }) => members.length > 0)
        .map(
          ({ title, members }) => html`
            <h2 key=${title}>${title}</h2>
            <ul>
              ${members.map((subject) => subjectLink(subject, subject === current))}
            </ul>
          `,
        )}
      ${filter.trim() === "" && channelLink(current === CHANNEL)}
    </nav>
  `;
}

/** Of no table: it is shown while nothing is searched for. */
function channelLink(isCurrent: boolean) {
  return html`
    <h2>${texts.try.channel.title}</h2>
    <ul>
      <li>
        <a href=${pathTo("try", CHANNEL)} aria-current=${isCurrent ? "page" : undefined}>
          <${Icon} name="activity" /><span>${texts.try.channel.link}</span>
        </a>
      </li>
    </ul>
  `;
}

function subjectLink(subject: Subject, isCurrent: boolean) {
  const label = subjectLabel(subject);
  return html`
    <li key=${label}>
      <a href=${pathTo("try", ...segmentsOf(subject))} title=${label} aria-current=${isCurrent ? "page" : undefined}>
        <${Icon} name=${subject.kind} /><span>${label}</span>
      </a>
    </li>
  `;
}
