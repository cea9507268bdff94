//! A table as bars, lying: a group for each row, a bar for each column. As text of an SVG picture.

use super::table::Table;
use crate::timeline::escaped;

const COLORS: [&str; 4] = ["#2166ac", "#b2182b", "#92c5de", "#f4a582"];
const WIDTH: f64 = 800.0;
const LEFT: f64 = 220.0;
const BAR: f64 = 16.0;
const TOP: f64 = 88.0;

/// The picture. Bars begin at zero; their numbers stand at their ends.
pub(super) fn draw(table: &Table, title: &str) -> String {
    let most = table.rows.iter().flat_map(|(_, values)| values).fold(1.0, |a: f64, b| a.max(*b));
    let scale = (WIDTH - LEFT - 70.0) / most;
    let group = BAR * (table.curves.len() as f64 + 1.0);
    let height = TOP + group * table.rows.len() as f64;
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{}",
        text(16.0, 28.0, "start", title)
    );
    for (at, (name, color)) in table.curves.iter().zip(COLORS.iter().cycle()).enumerate() {
        let x = 16.0 + 190.0 * at as f64;
        picture += &rect([x, 44.0], [12.0, 12.0], color);
        picture += &text(x + 18.0, 55.0, "start", name);
    }
    for (row, (name, values)) in table.rows.iter().enumerate() {
        let y = TOP + group * row as f64;
        picture += &text(LEFT - 8.0, y + group / 2.0 - 4.0, "end", name);
        for (at, (value, color)) in values.iter().zip(COLORS.iter().cycle()).enumerate() {
            let y = y + BAR * at as f64;
            picture += &rect([LEFT, y], [value * scale, BAR - 2.0], color);
            picture +=
                &text(LEFT + value * scale + 6.0, y + BAR - 4.0, "start", &value.to_string());
        }
    }
    picture + "</svg>\n"
}

fn rect([x, y]: [f64; 2], [width, height]: [f64; 2], color: &str) -> String {
    format!(
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{color}\"/>\n"
    )
}

fn text(x: f64, y: f64, anchor: &str, text: &str) -> String {
    let text = escaped(text);
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_a_bar() {
        let table = Table::parse("program,a,b<\nx,1,2\ny & z,3,4\n").unwrap();
        let picture = draw(&table, "title");
        // The page, two of the legend, four bars.
        assert_eq!(picture.matches("<rect").count(), 1 + 2 + 4);
        for text in [">title<", ">b&lt;<", ">y &amp; z<", ">4<"] {
            assert!(picture.contains(text), "{text}");
        }
        assert!(picture.trim_end().ends_with("</svg>"));
    }
}
