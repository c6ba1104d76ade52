import { Component } from "preact";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import {
  type DiagramBox,
  type DiagramLink,
  footPath,
  HEAD_HEIGHT,
  type LinkEnd,
  ROW_HEIGHT,
  targetPath,
} from "./diagram-model.ts";
import type { Point } from "./layout.ts";
import { pathToTable } from "./objects.ts";

type BoxProps = {
  readonly box: DiagramBox;
  readonly at: Point;
  /** True if the pointer is on the table or on one that it is related to. */
  readonly isLit: boolean;
  /** False shows only the name, in a size that is legible at a small scale. */
  readonly isDetailed: boolean;
  readonly onPoint?: (id: string | null) => void;
  readonly onFocus?: (id: string | null) => void;
  readonly onOpen?: (box: DiagramBox) => void;
  readonly onMove?: (id: string, distance: Point) => void;
};

const CHARACTERS_PER_PIXEL = 1 / 6.9;
const GUTTER = 32;
const STEP = 20;
const MOVES: Readonly<Record<string, Point>> = {
  ArrowLeft: { x: -STEP, y: 0 },
  ArrowRight: { x: STEP, y: 0 },
  ArrowUp: { x: 0, y: -STEP },
  ArrowDown: { x: 0, y: STEP },
};

/** A table of the diagram, with a link to its details. It is rendered again only when its own properties change. */
export class BoxShape extends Component<BoxProps> {
  override shouldComponentUpdate(next: BoxProps): boolean {
    const { box, at, isLit, isDetailed } = this.props;
    return (
      box !== next.box ||
      at.x !== next.at.x ||
      at.y !== next.at.y ||
      isLit !== next.isLit ||
      isDetailed !== next.isDetailed
    );
  }

  override render({ box, at, isLit, isDetailed, onPoint, onFocus, onOpen, onMove }: BoxProps) {
    const { id, table, title, width, height, rows } = box;
    const open = (event: MouseEvent) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey) return;
      event.preventDefault();
      onOpen?.(box);
    };
    const move = (event: KeyboardEvent) => {
      const distance = event.altKey ? MOVES[event.key] : undefined;
      if (!distance) return;
      event.preventDefault();
      event.stopPropagation();
      onMove?.(id, distance);
    };
    return html`
      <g class=${isLit ? "diagram-table lit" : "diagram-table"} transform=${`translate(${at.x} ${at.y})`} data-box=${id}>
        <a
          class="diagram-anchor"
          href=${pathToTable(table)}
          aria-label=${texts.schema.boxLabel(title, table.columns.length)}
          onClick=${open}
          onKeyDown=${move}
          onPointerEnter=${() => onPoint?.(id)}
          onPointerLeave=${() => onPoint?.(null)}
          onFocus=${() => onFocus?.(id)}
          onBlur=${() => onFocus?.(null)}
        >
          <rect class="diagram-box" width=${width} height=${height} rx="6" />
          ${isDetailed ? boxTitle(title, width) : boxName(box)}
        </a>
        ${isDetailed && rows.length > 0 && boxRows(box)}
      </g>
    `;
  }
}

const TITLE_SIZE = 13;
const NAME_SIZE = 22;
/** The width of a character relative to the font size. */
const BOLD_RATIO = 0.62;

function boxTitle(title: string, width: number) {
  const size = Math.min(TITLE_SIZE, (width - 20) / (title.length * BOLD_RATIO));
  return html`<text class="diagram-title" x="10" y="20" font-size=${size}>${title}</text>`;
}

/** Shows the name as large as fits, for a small diagram. */
function boxName({ title, width, height }: DiagramBox) {
  const size = Math.min(NAME_SIZE, (width - 8) / (title.length * BOLD_RATIO));
  return html`
    <text class="diagram-title" x=${width / 2} y=${height / 2 + size / 3} font-size=${size} text-anchor="middle">${title}</text>
  `;
}

function boxRows({ rows, width }: DiagramBox) {
  const characters = Math.floor((width - GUTTER - 10) * CHARACTERS_PER_PIXEL);
  return html`
    <g class="diagram-rows">
      <path class="diagram-rule" d=${`M0 ${HEAD_HEIGHT}H${width}`} />
      ${rows.map(({ name, type, isKey, isForeign, nullable }, index) => {
        const y = HEAD_HEIGHT + index * ROW_HEIGHT + 14;
        const shown = shorten(name, characters - 4);
        return html`
          <g key=${name}>
            ${(isKey || isForeign) && html`<text class="diagram-mark" x="8" y=${y}>${isKey ? "PK" : "FK"}</text>`}
            <text class=${isKey ? "diagram-column key" : "diagram-column"} x=${GUTTER - 4} y=${y}>${shown}</text>
            <text class="diagram-type" x=${width - 8} y=${y} text-anchor="end">
              ${shorten(`${type}${nullable ? "?" : ""}`, characters - shown.length - 1)}
            </text>
          </g>
        `;
      })}
    </g>
  `;
}

function shorten(text: string, length: number): string {
  if (text.length <= length) return text;
  return length < 3 ? "" : `${text.slice(0, length - 1)}…`;
}

export type LinkProps = {
  readonly link: DiagramLink;
  readonly ends: { readonly from: LinkEnd; readonly to: LinkEnd };
  /** The line as an SVG path. */
  readonly line: string;
  readonly isLit: boolean;
  readonly onPoint?: (link: DiagramLink | null) => void;
};

/** A foreign key, with a crow's foot at its own table. */
export function LinkShape({ link, ends: { from, to }, line, isLit, onPoint }: LinkProps) {
  return html`
    <g class=${isLit ? "diagram-link lit" : "diagram-link"} onPointerEnter=${() => onPoint?.(link)} onPointerLeave=${() => onPoint?.(null)}>
      <title>${describeLink(link)}</title>
      <path class="diagram-reach" d=${line} />
      <path class="diagram-line" d=${line} />
      <path class="diagram-line" d=${footPath(from, link.isMany)} />
      <path class="diagram-line" d=${targetPath(to, link.isOptional)} />
    </g>
  `;
}

/** Returns `films.director_id refers to people.id, on delete cascade`. */
export function describeLink({ from, key }: DiagramLink): string {
  const [, table = ""] = JSON.parse(from) as string[];
  return texts.schema.reference(
    table,
    key.columns.join(", "),
    key.target.name,
    key.target_columns.join(", "),
    key.on_delete,
  );
}
