import { type DatabaseDescription, readableComment } from "../api/catalog.ts";
import { type SessionState, sessionState } from "../api/session.ts";
import { useCatalog } from "../api/use-catalog.ts";
import { Notice } from "../components/notice.ts";
import { Empty, Loading, PageHeader } from "../components/page.ts";
import { Select } from "../components/select.ts";
import { pathTo, useSearchParameter, useSegments } from "../frame/router.ts";
import { html } from "../html.ts";
import { useStore } from "../store.ts";
import { texts } from "../texts.ts";
import { ChannelPanel } from "./channel-panel.ts";
import type { RequestContext } from "./edited-request.ts";
import { RequestPanel } from "./request-panel.ts";
import { SubjectList } from "./subject-list.ts";
import {
  CHANNEL,
  findSubject,
  listSubjects,
  type Operation,
  operationsOf,
  type Subject,
  segmentsOf,
  subjectLabel,
} from "./subjects.ts";
import { WatchPanel } from "./watch-panel.ts";

/** The requests of each table and function, to edit and to run. */
export function TryPage() {
  const catalog = useCatalog();
  const role = viewedRole(useStore(sessionState));
  const [, ...segments] = useSegments();
  if (catalog.error && !catalog.value) {
    return html`<${PageHeader} title=${texts.try.title} /><${Notice} kind="error" error=${catalog.error} onRetry=${catalog.reload} />`;
  }
  if (!catalog.value) return html`<${PageHeader} title=${texts.try.title} /><${Loading} />`;
  const subjects = listSubjects(catalog.value, role);
  const isChannel = segments[0] === CHANNEL;
  const subject = segments.length > 0 && !isChannel ? findSubject(subjects, segments) : undefined;
  const operations = subject?.kind === "table" ? operationsOf(catalog.value, role, subject.table) : (["call"] as const);
  const context = requestContext(catalog.value);
  return html`
    <${PageHeader} title=${titleOf(subject, isChannel)} />
    <div class=${segments.length > 0 ? "try has-subject" : "try"}>
      <${SubjectList} subjects=${subjects} current=${isChannel ? CHANNEL : subject} />
      <div class="try-main">
        ${segments.length > 0 && html`<a class="try-back" href=${pathTo("try")}>${texts.try.all}</a>`}
        ${
          subject
            ? html`<${SubjectPanel}
                key=${`${role} ${segmentsOf(subject).join("/")}`}
                subject=${subject}
                operations=${operations}
                context=${context}
                role=${role}
              />`
            : isChannel
              ? html`<${ChannelPanel} />`
              : html`<${Empty}>${segments.length > 0 ? texts.try.notFound : texts.try.choose}<//>`
        }
      </div>
    </div>
  `;
}

function titleOf(subject: Subject | undefined, isChannel: boolean): string {
  const name = isChannel ? texts.try.channel.title : subject && subjectLabel(subject);
  return name ? `${texts.try.title}: ${name}` : texts.try.title;
}

type SubjectPanelProps = {
  readonly subject: Subject;
  readonly operations: readonly Operation[];
  readonly context: RequestContext;
  readonly role: string;
};

function SubjectPanel({ subject, operations, context, role }: SubjectPanelProps) {
  const [chosen, choose] = useSearchParameter("operation");
  const operation = operations.find((name) => name === chosen) ?? operations[0]!;
  const comment = readableComment(subject.kind === "table" ? subject.table.comment : subject.called.comment);
  return html`
    ${comment && html`<p class="quiet">${comment}</p>`}
    ${
      operations.length > 1 &&
      html`<div class="try-operation">
        <${Select}
          label=${texts.try.operation}
          value=${operation}
          options=${operations.map((name) => ({ value: name, label: texts.try.operations[name] }))}
          onChange=${(name: string) => choose(name, { replace: true })}
        />
      </div>`
    }
    ${
      operation === "watch" && subject.kind === "table"
        ? html`<${WatchPanel} table=${subject.table} />`
        : html`<${RequestPanel} key=${operation} subject=${subject} operation=${operation} context=${context} role=${role} />`
    }
  `;
}

function viewedRole(state: SessionState): string {
  return state.status === "signed-in" ? (state.viewAs ?? state.session).role : "anon";
}

function requestContext({ schemas, tables }: DatabaseDescription): RequestContext {
  const exposed = schemas.filter((schema) => schema.exposed).map(({ name }) => name);
  return { tables, onlySchema: exposed.length === 1 ? exposed[0]! : null };
}
