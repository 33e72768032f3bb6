// About this run: what was recorded and what was not, the observer's cost, and what the words mean.
import type { PageData } from '../page.ts';
import { HowToRead } from '../parts.tsx';
import { quantity, say, told } from '../text.ts';

export function AboutView({ about }: { about: PageData['about'] }) {
  return (
    <div class="about">
      <div class="bar"><HowToRead view="about" /></div>
      {about.map(({ title, facts }) => (
        <section>
          <h3>{told(title)}</h3>
          <dl>
            {facts.map(({ label, value }) => (
              <div>
                <dt>{told(label)}</dt>
                <dd><bdi>{value === null ? say('page.not_measured') : typeof value === 'object' ? told(value) : typeof value === 'boolean' ? say(value ? 'page.yes' : 'page.no') : quantity(label.id, value)}</bdi></dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
      <section>
        <h3>{say('page.glossary')}</h3>
        <dl class="glossary">
          {['step', 'self', 'total', 'exposed', 'idle', 'share', 'gain', 'confidence', 'ledger'].map(word => (
            <div><dt>{say(`page.glossary.${word}`)}</dt><dd>{say(`page.glossary.${word}.means`)}</dd></div>
          ))}
        </dl>
      </section>
    </div>
  );
}
